// As much of JSON as an adapter needs.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Gives the bytes of the UTF-8 sign that begins `text`, 0 where none does.
static size_t json_sign(const unsigned char *text, size_t left) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80 ? 1 : text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : text[0] >> 3 == 30 ? 4 : 0;
    if (length <= 1 || length > left) return length > left ? 0 : length;
    uint32_t sign = text[0] & (0x7f >> length);
    for (size_t index = 1; index < length; index++) {
        if (text[index] >> 6 != 2) return 0;
        sign = sign << 6 | (text[index] & 0x3f);
    }
    return sign < least[length] || sign > 0x10ffff || (sign >= 0xd800 && sign < 0xe000) ? 0 : length;
}

// Writes bytes as a JSON string, or where they are not UTF-8 as the object of their hex digits.
static void json_text(FILE *out, const void *bytes, size_t length) {
    const unsigned char *text = bytes;
    size_t sound = 0;
    for (size_t step; sound < length && (step = json_sign(text + sound, length - sound)); sound += step) {}
    fputs(sound < length ? "{\"hex\":\"" : "\"", out);
    for (size_t index = 0; index < length; index++) {
        if (sound < length) fprintf(out, "%02x", text[index]);
        else if (text[index] < 0x20) fprintf(out, "\\u%04x", text[index]);
        else if (text[index] == '"' || text[index] == '\\') fprintf(out, "\\%c", text[index]);
        else fputc(text[index], out);
    }
    fputs(sound < length ? "\"}" : "\"", out);
}

// Goes over a value, from its first byte; gives where it ends.
static const char *json_skip(const char *text) {
    int depth = 0;
    for (bool quoted = false; *text; text++) {
        if (quoted && *text == '\\' && text[1]) text++;
        else if (*text == '"') quoted = !quoted;
        else if (!quoted && depth == 0 && strchr(",}]", *text)) break;
        else if (!quoted) depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
    }
    return text;
}

static char *json_put(char *end, uint32_t sign) {
    if (sign < 0x80) return *end++ = sign, end;
    if (sign < 0x800) return *end++ = 0xc0 | sign >> 6, *end++ = 0x80 | (sign & 0x3f), end;
    if (sign < 0x10000) *end++ = 0xe0 | sign >> 12;
    else *end++ = 0xf0 | sign >> 18, *end++ = 0x80 | (sign >> 12 & 0x3f);
    return *end++ = 0x80 | (sign >> 6 & 0x3f), *end++ = 0x80 | (sign & 0x3f), end;
}

static uint32_t json_unit(const char **text) {
    unsigned unit = 0;
    int taken = 0;
    if (sscanf(*text, "%4x%n", &unit, &taken) == 1) *text += taken;
    return unit;
}

// Gives a copy of the string whose first quote stands at `text`, its escapes undone; to be freed.
static char *json_string(const char *text) {
    char *copy = malloc(strlen(text)), *end = copy;
    for (text++; *text && *text != '"';) {
        static const char plain[] = "nrtbf", meant[] = "\n\r\t\b\f";
        if (*text != '\\') {
            *end++ = *text++;
            continue;
        }
        const char *escape = strchr(plain, text[1]);
        text += 2;
        if (text[-1] == 'u') {
            uint32_t sign = json_unit(&text);
            if (sign >> 10 == 0x36 && text[0] == '\\' && text[1] == 'u') {
                text += 2;
                sign = 0x10000 + ((sign & 0x3ff) << 10) + (json_unit(&text) & 0x3ff);
            }
            end = json_put(end, sign);
        } else {
            *end++ = escape ? meant[escape - plain] : text[-1];
        }
    }
    *end = 0;
    return copy;
}

// Gives a field of the object in `line`: of a string its text, of all else what stands there. NULL where it is not there, or is
// null; to be freed. Fields of objects within it are not its own.
static char *json_field(const char *line, const char *name) {
    const char *text = strchr(line, '{');
    while (text && *text && *text != '}') {
        text += strspn(text + 1, " \t\r\n") + 1;
        if (*text != '"') return NULL;
        char *found = json_string(text);
        bool wanted = !strcmp(found, name);
        free(found);
        while (*++text && *text != '"') text += *text == '\\' && text[1];
        text += strcspn(text, ":");
        text += *text ? strspn(text + 1, " \t\r\n") + 1 : 0;
        const char *end = json_skip(text);
        if (wanted && *text == '"') return json_string(text);
        if (wanted) return strncmp(text, "null", 4) ? strndup(text, end - text) : NULL;
        text = end;
    }
    return NULL;
}
