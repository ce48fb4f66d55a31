/* SPDX-License-Identifier: MIT */
#include "tools/number.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Integers ---- */

__extension__ typedef unsigned __int128 wide;

static wide join(uint64_t low, uint64_t high) { return (wide)high << 64 | low; }

/* Parses digits. False if there is no digit, or if another character is among them. */
static bool parse_magnitude(const char *digits, unsigned base, wide *magnitude, bool *fits)
{
    static const char values[] = "0123456789abcdef";
    *magnitude = 0;
    *fits = true;
    for (const char *at = digits; *at != '\0'; at++) {
        const char *value = strchr(values, tolower((unsigned char)*at));
        unsigned digit = value == NULL ? base : (unsigned)(value - values);
        if (digit >= base)
            return false;
        *fits = *fits && *magnitude <= (~(wide)0 - digit) / base;
        *magnitude = *magnitude * base + digit;
    }
    return *digits != '\0';
}

bool number_parse_integer(const char *word, struct number_integer *integer)
{
    wide magnitude;
    integer->is_negative = word[0] == '-';
    const char *digits = word + (word[0] == '-' || word[0] == '+' ? 1 : 0);
    bool is_hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    if (!parse_magnitude(digits + (is_hexadecimal ? 2 : 0), is_hexadecimal ? 16 : 10, &magnitude,
                         &integer->fits))
        return false;
    if (integer->is_negative && magnitude > (wide)1 << 127)
        integer->fits = false;
    if (integer->is_negative)
        magnitude = 0 - magnitude;
    integer->low = (uint64_t)magnitude;
    integer->high = (uint64_t)(magnitude >> 64);
    return true;
}

bool number_fits(const struct number_integer *integer, uint32_t bits)
{
    wide value = join(integer->low, integer->high);
    if (!integer->fits)
        return false;
    if (integer->is_negative)
        return 0 - value <= (wide)1 << (bits - 1);
    return bits == 128 || value >> bits == 0;
}

void number_format_range(uint32_t bits, char *text, size_t size)
{
    if (bits <= 32)
        snprintf(text, size, " (%lld to %lld)", -(1LL << (bits - 1)), (1LL << bits) - 1);
    else
        snprintf(text, size, " (-2^%u to 2^%u - 1)", bits - 1, bits);
}

void number_format_integer(const uint64_t words[2], bool is_unsigned, char text[NUMBER_TEXT_BYTES])
{
    wide value = join(words[0], words[1]);
    bool is_negative = !is_unsigned && value >> 127 != 0;
    char digits[NUMBER_TEXT_BYTES];
    size_t start = sizeof digits - 1;
    digits[start] = '\0';
    if (is_negative)
        value = 0 - value;
    do {
        digits[--start] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    if (is_negative)
        digits[--start] = '-';
    memcpy(text, digits + start, sizeof digits - start);
}

/* ---- Parsing floating-point numbers ---- */

bool number_is_floating(const char *word)
{
    char *end;
    strtold(word, &end);
    return end != word && *end == '\0';
}

/* LLVM requires an exponent after hexadecimal digits, and accepts one spelling of infinity only. */
char *number_normalise_floating(const char *word)
{
    static const char exponent[] = "p0";
    while (isspace((unsigned char)*word))
        word++;
    long double value = strtold(word, NULL);
    const char *digits = word + (*word == '-' || *word == '+' ? 1 : 0);
    bool is_spelt = isalpha((unsigned char)*digits) != 0;
    if (is_spelt && isinf(value))
        return strdup(*word == '-' ? "-inf" : "inf");
    if (is_spelt)
        return strdup(*word == '-' ? "-nan" : "nan");
    bool is_hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    char *text = calloc(strlen(word) + sizeof exponent, 1);
    if (text == NULL)
        return NULL;
    strcpy(text, word);
    if (is_hexadecimal && strpbrk(word, "pP") == NULL)
        strcat(text, exponent);
    return text;
}

/* ---- Formatting floating-point numbers ---- */

/* Formats with the fewest digits that identify the number: in a type of fewer bits than a double,
 * given by its precision and the exponent of its smallest normal number; in a double, or, if
 * `precision` is LDBL_MANT_DIG, in a long double. Numbers that are integers and not too long have
 * no exponent. */
static void format_shortest(long double value, int precision, int least_exponent, char *text)
{
    bool is_long = precision == LDBL_MANT_DIG;
    bool same = fabsl(value) < 1e15L && value == rintl(value);
    if (same)
        snprintf(text, NUMBER_TEXT_BYTES, "%.0Lf", value);
    int most = is_long ? LDBL_DECIMAL_DIG : DBL_DECIMAL_DIG;
    if (precision < DBL_MANT_DIG)
        most = FLT_DECIMAL_DIG;
    for (int digits = 1; digits <= most && !same; digits++) {
        snprintf(text, NUMBER_TEXT_BYTES, "%.*Lg", digits, value);
        long double parsed = is_long ? strtold(text, NULL) : (long double)strtod(text, NULL);
        if (precision < DBL_MANT_DIG) {
            int exponent;
            frexp((double)parsed, &exponent);
            exponent = exponent < least_exponent ? least_exponent : exponent;
            double scaled = nearbyint(ldexp((double)parsed, precision - exponent));
            parsed = (long double)ldexp(scaled, exponent - precision);
        }
        same = parsed == value;
    }
}

static double half_value(const uint8_t *bytes)
{
    enum { FRACTION_BITS = 10, BIAS = 15, SPECIAL = 31 };
    unsigned bits = bytes[0] | (unsigned)bytes[1] << 8;
    unsigned fraction = bits & 0x3FF;
    unsigned exponent = bits >> FRACTION_BITS & SPECIAL;
    double magnitude = fraction == 0 ? HUGE_VAL : (double)NAN;
    if (exponent == 0)
        magnitude = ldexp(fraction, 1 - BIAS - FRACTION_BITS);
    else if (exponent != SPECIAL)
        magnitude = ldexp(fraction + (1u << FRACTION_BITS), (int)exponent - BIAS - FRACTION_BITS);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/* ---- Quadruple precision ---- */

enum { QUAD_BIAS = 16383, QUAD_SPECIAL = 32767, QUAD_FRACTION_BITS = 112 };

/* Formats a number in hexadecimal, without trailing zeros in the fraction. */
static void format_hexadecimal(wide fraction, int exponent, bool is_negative, char *text)
{
    bool is_normal = exponent != 0;
    int length = snprintf(text, NUMBER_TEXT_BYTES, "%s0x%d", is_negative ? "-" : "", is_normal);
    const char *separator = ".";
    for (fraction <<= 128 - QUAD_FRACTION_BITS; fraction != 0; fraction <<= 4) {
        length += snprintf(text + length, NUMBER_TEXT_BYTES - (size_t)length, "%s%x", separator,
                           (unsigned)(fraction >> 124));
        separator = "";
    }
    snprintf(text + length, NUMBER_TEXT_BYTES - (size_t)length, "p%+d",
             (is_normal ? exponent : 1) - QUAD_BIAS);
}

static void format_quad(const uint8_t *bytes, char *text)
{
    uint64_t words[2];
    memcpy(words, bytes, sizeof words);
    wide bits = join(words[0], words[1]);
    wide fraction = bits & (((wide)1 << QUAD_FRACTION_BITS) - 1);
    int exponent = (int)(bits >> QUAD_FRACTION_BITS & QUAD_SPECIAL);
    bool is_negative = bits >> 127 != 0;
    int spare = QUAD_FRACTION_BITS + 1 - LDBL_MANT_DIG;
    bool fits = exponent == 0 || exponent == QUAD_SPECIAL
                    ? fraction == 0 || exponent == QUAD_SPECIAL
                    : exponent - QUAD_BIAS + 1 >= LDBL_MIN_EXP &&
                          exponent - QUAD_BIAS + 1 <= LDBL_MAX_EXP &&
                          (spare <= 0 || (fraction & (((wide)1 << spare) - 1)) == 0);
    if (!fits) { /* a long double */
        format_hexadecimal(fraction, exponent, is_negative, text);
        return;
    }
    long double magnitude = fraction == 0 ? HUGE_VALL : (long double)NAN;
    if (exponent != QUAD_SPECIAL)
        magnitude = exponent == 0 ? 0
                                  : ldexpl((long double)(fraction | (wide)1 << QUAD_FRACTION_BITS),
                                           exponent - QUAD_BIAS - QUAD_FRACTION_BITS);
    /* A number that needs more digits in decimal is formatted in hexadecimal. */
    enum { DIGITS = 36, MORE_DIGITS = 60 };
    char more[MORE_DIGITS + NUMBER_TEXT_BYTES];
    magnitude = is_negative ? -magnitude : magnitude;
    snprintf(text, NUMBER_TEXT_BYTES, "%.*Lg", DIGITS, magnitude);
    snprintf(more, sizeof more, "%.*Lg", MORE_DIGITS, magnitude);
    if (strcmp(text, more) != 0)
        format_hexadecimal(fraction, exponent, is_negative, text);
}

void number_format_floating(enum cairn_type_kind kind, const uint8_t bytes[16],
                            char text[NUMBER_TEXT_BYTES])
{
    float single = 0;
    float half_of_float; /* a bfloat is the upper half of a float */
    uint32_t upper = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 24;
    double whole = 0;
    long double extended = 0;
    memcpy(&single, bytes, sizeof single);
    memcpy(&half_of_float, &upper, sizeof upper);
    memcpy(&whole, bytes, sizeof whole);
    memcpy(&extended, bytes, sizeof extended);
    switch (kind) {
    case CAIRN_TYPE_HALF:
        format_shortest((long double)half_value(bytes), 11, -13, text);
        break;
    case CAIRN_TYPE_BFLOAT:
        format_shortest((long double)half_of_float, 8, FLT_MIN_EXP, text);
        break;
    case CAIRN_TYPE_FLOAT:
        format_shortest((long double)single, FLT_MANT_DIG, FLT_MIN_EXP, text);
        break;
    case CAIRN_TYPE_X86_FP80:
        format_shortest(extended, LDBL_MANT_DIG, 0, text);
        break;
    case CAIRN_TYPE_FP128:
        format_quad(bytes, text);
        break;
    default:
        format_shortest((long double)whole, DBL_MANT_DIG, 0, text);
        break;
    }
}
