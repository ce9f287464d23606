// Puts @NAME@ behind protocol 1 of gguf-conformance: a line of JSON comes in, a line of JSON goes out.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <unistd.h>

#include "json.h"

// An answer is written to memory first, so that one that is given up half-way leaves nothing behind.
static FILE *out;
static jmp_buf given_up;
static const char *class, *message; // of the answer that is given instead; an error has no class

// Refuses the input: a verdict on the file. The classes are listed in docs/protocol.md; "other" fits all. With NULL it says that
// the adapter itself failed, which is no verdict.
static _Noreturn void reject(const char *why, const char *text) {
    class = why, message = text;
    longjmp(given_up, 1);
}

// ---- The library. Replace all of this part: call yours in `header`, and write what it found in this form. --------------------

// A little reader of the header, so that the adapter works before your library is in it.
static unsigned char *data;
static size_t size, at;

static const char *const names[] = {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "array", "u64", "i64", "f64"};
static const unsigned widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { STRING = 8, ARRAY = 9, TYPES = 13 };

static const unsigned char *take(uint64_t count, const char *why) {
    if (count > size - at) reject(why, "the file ends before that");
    at += count;
    return data + at - count;
}

static uint64_t bits(unsigned width) {
    const unsigned char *raw = take(width, "truncated");
    uint64_t sum = 0;
    while (width--) sum = sum << 8 | raw[width];
    return sum;
}

static void write_string(void) {
    uint64_t length = bits(8);
    json_text(out, take(length, "bad-length"), length);
}

static unsigned type_of(bool arrays) {
    uint64_t type = bits(4);
    if (type >= TYPES || (type == ARRAY && !arrays)) reject("bad-value-type", "a value of a type that is not known");
    return type;
}

static void write_value(unsigned type) {
    if (type == STRING) {
        write_string();
        return;
    }
    unsigned width = widths[type], shift = 64 - 8 * width;
    uint64_t value = bits(width);
    switch (names[type][0]) {
    case 'f': fprintf(out, "\"0x%0*" PRIx64 "\"", 2 * (int)width, value); break; // the bits, never a number
    case 'b': fputs(value ? "\"true\"" : "\"false\"", out); break;
    case 'i': fprintf(out, "\"%" PRId64 "\"", (int64_t)(value << shift) >> shift); break;
    default: fprintf(out, "\"%" PRIu64 "\"", value);
    }
}

static void write_pair(uint64_t *alignment) {
    const unsigned char *key = data + at + 8;
    fputs("{\"key\":", out);
    write_string();
    size_t length = data + at - key;
    unsigned type = type_of(true);
    fprintf(out, ",\"type\":\"%s\",", names[type]);
    unsigned items = type == ARRAY ? type_of(false) : type;
    uint64_t count = type == ARRAY ? bits(8) : 1;
    if (type == ARRAY) fprintf(out, "\"items\":\"%s\",", names[items]);
    fputs(type == ARRAY ? "\"value\":[" : "\"value\":", out);
    for (uint64_t index = 0; index < count; index++) {
        if (index) fputc(',', out);
        write_value(items);
    }
    fputs(type == ARRAY ? "]}" : "}", out);
    if (type == 4 && length == 17 && !memcmp(key, "general.alignment", 17)) at -= 4, *alignment = bits(4);
}

static void write_tensor(void) {
    fputs("{\"name\":", out);
    write_string();
    fputs(",\"dims\":[", out);
    uint64_t count = bits(4);
    for (uint64_t index = 0; index < count; index++) fprintf(out, "%s\"%" PRIu64 "\"", index ? "," : "", bits(8));
    uint64_t type = bits(4);
    fprintf(out, "],\"type\":%" PRIu64 ",\"offset\":\"%" PRIu64 "\"}", type, bits(8));
}

static void read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    at = 0;
    if (!file) reject(NULL, strerror(errno));
    size_t room = 0;
    for (size = 0;; size += fread(data + size, 1, room - size, file)) {
        if (feof(file) || ferror(file)) break;
        if (size == room) data = realloc(data, room = 2 * room + 65536);
    }
    bool failed = ferror(file);
    fclose(file);
    if (failed) reject(NULL, "the file cannot be read");
}

static void header(const char *path) {
    read_file(path);
    if (memcmp(take(4, "truncated"), "GGUF", 4)) reject("bad-magic", "no GGUF at the start");
    uint64_t version = bits(4), alignment = 32;
    if (version != 2 && version != 3) reject("bad-version", "a version that is not known");
    uint64_t tensors = bits(8), pairs = bits(8);
    fputs("{\"kv\":[", out);
    for (uint64_t index = 0; index < pairs; index++) {
        if (index) fputc(',', out);
        write_pair(&alignment);
    }
    if (!alignment || alignment & (alignment - 1)) reject("bad-alignment", "the alignment is no power of two");
    fputs("],\"tensors\":[", out);
    for (uint64_t index = 0; index < tensors; index++) {
        if (index) fputc(',', out);
        write_tensor();
    }
    uint64_t offset = tensors ? (at + alignment - 1) / alignment * alignment : at;
    fprintf(out, "],\"version\":%" PRIu64 ",\"alignment\":%" PRIu64 ",\"data_offset\":%" PRIu64 "}", version, alignment, offset);
}

// ---- The protocol. What you add to HELLO and to `respond` is asked; what is not there is never asked, nor counted against you.

#define HELLO "{\"name\":\"@NAME@\",\"version\":\"0\",\"language\":\"c\",\"protocol\":1,\"ops\":{\"header\":{}}}"

// Writes the field of the answer and what stands in it.
static void respond(const char *op, const char *path) {
    if (!op) {
        reject(NULL, "not a request");
    } else if (!strcmp(op, "hello")) {
        fputs("\"ok\":" HELLO, out);
    } else if (!strcmp(op, "header") && path) {
        fputs("\"ok\":", out);
        header(path);
    } else {
        fputs("\"unsupported\":", out);
        json_text(out, op, strlen(op));
    }
}

static void write_instead(void) {
    if (class) fprintf(out, "\"reject\":{\"class\":\"%s\",\"at\":%zu,\"message\":", class, at);
    else fputs("\"error\":", out);
    json_text(out, message, strlen(message));
    if (class) fputc('}', out);
}

int main(void) {
    FILE *answers = fdopen(dup(1), "w");
    dup2(2, 1); // what the library prints goes to stderr: stdout is for answers alone
    static char *line, *text;
    static size_t room, length;
    while (getline(&line, &room, stdin) > 0) {
        char *seq = json_field(line, "seq"), *op = json_field(line, "op"), *path = json_field(line, "path");
        out = open_memstream(&text, &length);
        if (setjmp(given_up)) {
            rewind(out);
            write_instead();
        } else {
            respond(op, path);
        }
        fflush(out); // sets `length` to what was written since `rewind`
        fprintf(answers, "{\"seq\":%s,", seq ? seq : "0");
        fwrite(text, 1, length, answers);
        fputs("}\n", answers);
        fflush(answers);
        fclose(out);
        free(text), free(seq), free(op), free(path);
    }
}
