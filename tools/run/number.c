/* SPDX-License-Identifier: MIT */
#include "tools/run/number.h"

#include <cairn/architecture.h>
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

/*
 * A positive number is a quotient of two natural numbers of many digits, times a power of two. So
 * all types are rounded in one way, and correctly: C's functions would round twice where the type
 * has no C type.
 */

/* Types of floating-point numbers. The significand has `precision` bits; the first one is not
 * stored, unless `is_explicit`. */
struct format {
    int precision;
    int exponent_bits;
    bool is_explicit;
};

static struct format format_of(enum cairn_type_kind kind)
{
    switch (kind) {
    case CAIRN_TYPE_HALF:
        return (struct format){11, 5, false};
    case CAIRN_TYPE_BFLOAT:
        return (struct format){8, 8, false};
    case CAIRN_TYPE_FLOAT:
        return (struct format){24, 8, false};
    case CAIRN_TYPE_X86_FP80:
        return (struct format){64, 15, true};
    case CAIRN_TYPE_FP128:
        return (struct format){113, 15, false};
    default:
        return (struct format){53, 11, false};
    }
}

/* A natural number: limbs of 32 bits, the lowest first, of which the last ones may be 0. */
struct natural {
    uint32_t *limbs;
    size_t count;
};

static void multiply_add(struct natural *number, uint32_t factor, uint32_t summand)
{
    uint64_t carry = summand;
    for (size_t i = 0; i < number->count; i++) {
        carry += (uint64_t)number->limbs[i] * factor;
        number->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static int bit_length(const struct natural *number)
{
    size_t count = number->count;
    while (count > 0 && number->limbs[count - 1] == 0)
        count--;
    return count == 0 ? 0 : (int)(32 * count) - __builtin_clz(number->limbs[count - 1]);
}

static void shift_left(struct natural *number, int bits)
{
    size_t whole = (size_t)bits / 32;
    unsigned rest = (unsigned)bits % 32;
    for (size_t i = number->count; i-- > 0;) {
        uint64_t upper = i >= whole ? number->limbs[i - whole] : 0;
        uint64_t lower = i >= whole + 1 ? number->limbs[i - whole - 1] : 0;
        number->limbs[i] = (uint32_t)((upper << 32 | lower) << rest >> 32);
    }
}

static void halve(struct natural *number)
{
    for (size_t i = 0; i < number->count; i++)
        number->limbs[i] =
            number->limbs[i] >> 1 | (i + 1 < number->count ? number->limbs[i + 1] << 31 : 0);
}

/* Subtracts if the result is not negative. */
static bool subtract_if_less(struct natural *number, const struct natural *other)
{
    uint64_t borrow = 0;
    size_t i = number->count;
    while (i > 0 && number->limbs[i - 1] == other->limbs[i - 1])
        i--;
    if (i > 0 && number->limbs[i - 1] < other->limbs[i - 1])
        return false;
    for (i = 0; i < number->count; i++) {
        uint64_t difference = (uint64_t)number->limbs[i] - other->limbs[i] - borrow;
        number->limbs[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    return true;
}

/* Rounds quotient × 2^exponent, which has more bits than the format or is exact, and returns the
 * bits of the number. `is_inexact`: the number is a little greater. */
static wide round_to(struct format format, wide quotient, int exponent, bool is_inexact)
{
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    int length = 128;
    while (length > 0 && quotient >> (length - 1) == 0)
        length--;
    int top = exponent + length - 1; /* exponent of the first bit */
    int keep = top < 1 - bias ? format.precision - (1 - bias - top) : format.precision;
    int drop = length - keep;
    wide infinity = ((wide)1 << format.exponent_bits) - 1;
    int fraction_bits = format.precision - !format.is_explicit;
    if (drop > length)
        return 0;
    wide significand = drop >= 128 ? 0 : drop > 0 ? quotient >> drop : quotient << -drop;
    wide rest = drop > 0 ? quotient - (drop >= 128 ? 0 : significand << drop) : 0;
    wide half = drop > 0 ? (wide)1 << (drop - 1) : 1;
    if (drop > 0 && (rest > half || (rest == half && (is_inexact || (significand & 1) != 0))))
        significand++;
    if (format.precision < 128 && significand >> format.precision != 0) {
        significand >>= 1;
        top++;
    }
    bool is_normal = significand >> (format.precision - 1) != 0;
    wide field = !is_normal ? 0 : top < 1 - bias ? 1 : (wide)(top + bias);
    if (field >= infinity) {
        field = infinity;
        significand = format.is_explicit ? (wide)1 << (format.precision - 1) : 0;
    }
    if (!format.is_explicit)
        significand &= ((wide)1 << (format.precision - 1)) - 1;
    return field << fraction_bits | significand;
}

/* Divides, and rounds numerator / denominator × 2^exponent. Changes both. */
static wide divide(struct format format, struct natural *numerator, struct natural *denominator,
                   int exponent)
{
    enum { QUOTIENT_BITS = 120 };
    int shift = QUOTIENT_BITS - 2 - (bit_length(numerator) - bit_length(denominator));
    wide quotient = 0;
    if (bit_length(numerator) == 0)
        return 0;
    shift_left(shift > 0 ? numerator : denominator, shift > 0 ? shift : -shift);
    shift_left(denominator, QUOTIENT_BITS);
    for (int i = 0; i < QUOTIENT_BITS; i++) {
        halve(denominator);
        quotient = quotient << 1 | (unsigned)subtract_if_less(numerator, denominator);
    }
    return round_to(format, quotient, exponent - shift, bit_length(numerator) > 0);
}

/* Reads the digits of a decimal or hexadecimal number, and the exponents of 10 and 2 that they need
 * after that. Digits beyond DIGITS_MAX only count as a last one that is not zero. */
enum { DIGITS_MAX = 20000, EXPONENT_MAX = 100000 };

static void read_digits(const char *at, struct natural *digits, int *exponent10, int *exponent2)
{
    bool is_hexadecimal = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    const char *set = is_hexadecimal ? "0123456789abcdef" : "0123456789";
    int places = 0; /* after the point */
    int count = 0;
    bool has_point = false;
    for (at += is_hexadecimal ? 2 : 0; *at != '\0'; at++) {
        const char *found = strchr(set, tolower((unsigned char)*at));
        if (*at == '.')
            has_point = true;
        else if (found == NULL)
            break;
        else if (count < DIGITS_MAX) {
            multiply_add(digits, is_hexadecimal ? 16 : 10, (uint32_t)(found - set));
            count += count > 0 || *found != '0';
            places += has_point;
        } else {
            digits->limbs[0] |= *found != '0';
            places -= !has_point;
        }
    }
    long exponent = *at == '\0' ? 0 : strtol(at + 1, NULL, 10);
    if (exponent > EXPONENT_MAX || exponent < -EXPONENT_MAX)
        exponent = exponent > 0 ? EXPONENT_MAX : -EXPONENT_MAX;
    *exponent10 = is_hexadecimal ? 0 : (int)exponent - places;
    *exponent2 = is_hexadecimal ? (int)exponent - 4 * places : 0;
}

/* Converts a number without a sign. */
static bool convert_digits(const char *digits, struct format format, wide *bits)
{
    /* No type has exponents of 10 beyond these; then the number is 0 or infinite. */
    enum { LIMIT = 6000, LIMBS = (4 * (DIGITS_MAX + LIMIT) + 16500 + 256) / 32 };
    int exponent10;
    int exponent2;
    uint32_t *limbs = calloc(2, LIMBS * sizeof *limbs);
    if (limbs == NULL)
        return false;
    /* Numbers are no longer than is needed, because each step takes time in proportion. */
    size_t length = strnlen(digits, DIGITS_MAX);
    struct natural numerator = {limbs, length / 8 + 2};
    struct natural denominator = {limbs + LIMBS, 1};
    denominator.limbs[0] = 1;
    read_digits(digits, &numerator, &exponent10, &exponent2);
    int magnitude = (int)(bit_length(&numerator) * 0.30103) + exponent10;
    if (magnitude > LIMIT || magnitude < -LIMIT) {
        exponent10 = 0;
        exponent2 = magnitude > 0 ? EXPONENT_MAX : -EXPONENT_MAX;
    }
    size_t count = (length + (size_t)abs(exponent10)) / 8 + 256 / 32;
    numerator.count = denominator.count = count < LIMBS ? count : LIMBS;
    for (; exponent10 > 0; exponent10--)
        multiply_add(&numerator, 10, 0);
    for (; exponent10 < 0; exponent10++)
        multiply_add(&denominator, 10, 0);
    *bits = divide(format, &numerator, &denominator, exponent2);
    free(limbs);
    return true;
}

bool number_parse_floating(const char *word, enum cairn_type_kind kind, uint8_t bytes[16])
{
    struct format format = format_of(kind);
    int fraction_bits = format.precision - !format.is_explicit;
    wide bits;
    while (isspace((unsigned char)*word))
        word++;
    bool is_negative = *word == '-';
    const char *digits = word + (*word == '-' || *word == '+' ? 1 : 0);
    if (isalpha((unsigned char)*digits)) {
        bool is_nan = tolower((unsigned char)*digits) == 'n';
        unsigned after_exponent = format.is_explicit ? 2U | is_nan : is_nan; /* quiet */
        int shift = fraction_bits - (format.is_explicit ? 2 : 1);
        bits = (((wide)1 << format.exponent_bits) - 1) << fraction_bits | (wide)after_exponent
                                                                              << shift;
    } else if (!convert_digits(digits, format, &bits)) {
        return false;
    }
    bits |= (wide)is_negative << (fraction_bits + format.exponent_bits);
    size_t size = (size_t)(fraction_bits + format.exponent_bits + 1) / 8;
    for (size_t i = 0; i < size; i++)
        bytes[CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? size - 1 - i : i] =
            (uint8_t)(bits >> 8 * i);
    return true;
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
    uint16_t bits;
    memcpy(&bits, bytes, sizeof bits);
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
    wide bits;
    memcpy(&bits, bytes, sizeof bits);
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
    uint16_t brief;
    memcpy(&brief, bytes, sizeof brief);
    uint32_t upper = (uint32_t)brief << 16;
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
