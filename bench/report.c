/* SPDX-License-Identifier: MIT */
#include "bench/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool bench_wants(const struct bench_options *options, const char *name)
{
    if (options->only == NULL)
        return true;
    size_t length = strlen(options->only);
    size_t shorter = length < strlen(name) ? length : strlen(name);
    return strncmp(name, options->only, shorter) == 0;
}

void bench_begin(const struct bench_options *options)
{
    if (!options->json)
        printf("%-44s %12s %-10s %s\n", "figure", "value", "unit", "against a peer; bound");
}

static const char *verdict(bool reached) { return reached ? "reached" : "MISSED"; }

static void print_text(const struct bench_figure *figure)
{
    printf("%-44s %12.2f %-10s", figure->name, figure->value,
           figure->unit == NULL ? "" : figure->unit);
    double ratio = figure->value / figure->peer_value;
    if (figure->peer != NULL)
        printf(" %.3f x %s (%.2f)", ratio, figure->peer, figure->peer_value);
    if (figure->ratio_limit > 0)
        printf("; at most %.3g x: %s", figure->ratio_limit, verdict(ratio <= figure->ratio_limit));
    if (figure->limit > 0)
        printf("; at most %.3g: %s", figure->limit, verdict(figure->value <= figure->limit));
    printf("\n");
}

static void print_json(const struct bench_figure *figure)
{
    printf("{\"name\":\"%s\",\"value\":%.4f,\"unit\":\"%s\"", figure->name, figure->value,
           figure->unit == NULL ? "" : figure->unit);
    if (figure->peer != NULL)
        printf(",\"peer\":\"%s\",\"peer_value\":%.4f,\"ratio\":%.5f", figure->peer,
               figure->peer_value, figure->value / figure->peer_value);
    if (figure->ratio_limit > 0)
        printf(",\"ratio_limit\":%.4f", figure->ratio_limit);
    if (figure->limit > 0)
        printf(",\"limit\":%.4f", figure->limit);
    printf("}\n");
}

void bench_print(const struct bench_options *options, const struct bench_figure *figure)
{
    if (!bench_wants(options, figure->name))
        return;
    if (options->json)
        print_json(figure);
    else
        print_text(figure);
    fflush(stdout);
}

void bench_print_missing(const struct bench_options *options, const char *name, const char *why)
{
    if (!bench_wants(options, name))
        return;
    if (options->json)
        printf("{\"name\":\"%s\",\"missing\":\"%s\"}\n", name, why);
    else
        printf("%-44s %12s %-10s %s\n", name, "-", "", why);
}

void bench_end(const struct bench_options *options)
{
    if (!options->json)
        printf("\nEach peer is measured in the same run, in turn with what it is compared with; "
               "times are medians.\n");
}

static double read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double bench_now(void) { return read_clock(CLOCK_MONOTONIC); }

double bench_now_of_thread(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

double bench_percentile(double *values, size_t count, double fraction)
{
    qsort(values, count, sizeof *values, compare);
    size_t index = (size_t)((double)(count - 1) * fraction + 0.5);
    return values[index];
}
