/* A replica that throws everything away: asks a server for its log from a place on and reads as fast as it can.
 *
 * dump_client SOCKET SERVER_ID FILE POSITION [follow]
 *
 * Logs in as root without a password over a unix socket. Without `follow` it asks the server to stop at the end of the log,
 * and prints `bytes events microseconds`, the time from the request on. With it, it runs until it is killed. The reading
 * costs one system call and a look at each packet's head, so that the server is what is measured. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BUFFER (4 << 20)
#define COM_QUERY 3
#define COM_BINLOG_DUMP 18
#define NON_BLOCK 1

static unsigned char buffer[BUFFER];
static size_t have, at;
static int server;

static void fail(const char *what) {
    fprintf(stderr, "dump_client: %s\n", what);
    exit(1);
}

static void fill(void) {
    if (at > 0 && at == have) at = have = 0;
    if (have == BUFFER) {
        memmove(buffer, buffer + at, have - at);
        have -= at;
        at = 0;
    }
    ssize_t n = read(server, buffer + have, BUFFER - have);
    if (n <= 0) fail("the connection is closed");
    have += (size_t)n;
}

static void need(size_t n) {
    while (have - at < n) {
        if (at > 0 && at + n > BUFFER) {
            memmove(buffer, buffer + at, have - at);
            have -= at;
            at = 0;
        }
        fill();
    }
}

/* The next packet's length and first byte; its contents are skipped. `text` gets the start of an error. */
static uint32_t packet(int *first, char *text, size_t room) {
    need(5);
    uint32_t length = buffer[at] | buffer[at + 1] << 8 | (uint32_t)buffer[at + 2] << 16;
    at += 4;
    *first = length > 0 ? buffer[at] : -1;
    size_t left = length, kept = 0;
    while (left > 0) {
        if (have == at) fill();
        size_t part = have - at < left ? have - at : left;
        if (text && kept + 1 < room) {
            size_t copy = part < room - 1 - kept ? part : room - 1 - kept;
            memcpy(text + kept, buffer + at, copy);
            kept += copy;
            text[kept] = 0;
        }
        at += part;
        left -= part;
    }
    return length;
}

static void put(int sequence, const void *body, size_t length) {
    unsigned char head[4] = {length & 255, length >> 8 & 255, length >> 16 & 255, (unsigned char)sequence};
    unsigned char *whole = malloc(length + 4);
    memcpy(whole, head, 4);
    memcpy(whole + 4, body, length);
    if (write(server, whole, length + 4) != (ssize_t)(length + 4)) fail("write");
    free(whole);
}

static void ok(const char *what) {
    char text[512];
    int first;
    packet(&first, text, sizeof text);
    if (first == 0xff) {
        fprintf(stderr, "%s: %s\n", what, text + 9);
        exit(1);
    }
}

static void login(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    ok("greeting");
    /* LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH */
    uint32_t capabilities = 1 | 1 << 9 | 1 << 15 | 1 << 19;
    unsigned char body[128] = {0};
    memcpy(body, &capabilities, 4);
    body[7] = 1; /* packets of up to 16 MB */
    body[8] = 45;
    memcpy(body + 32, "root", 5);
    body[37] = 0; /* no password */
    memcpy(body + 38, "mysql_native_password", 22);
    put(1, body, 60);
    char text[512];
    int first;
    packet(&first, text, sizeof text);
    if (first == 0xfe) {
        put(3, "", 0);
        packet(&first, text, sizeof text);
    }
    if (first != 0) fail("the login was refused");
}

static void statement(const char *sql) {
    char body[512];
    body[0] = COM_QUERY;
    strcpy(body + 1, sql);
    put(0, body, 1 + strlen(sql));
    ok(sql);
}

static long now(void) {
    struct timeval time;
    gettimeofday(&time, NULL);
    return time.tv_sec * 1000000L + time.tv_usec;
}

int main(int count, char **words) {
    if (count < 5) fail("usage: dump_client SOCKET SERVER_ID FILE POSITION [follow]");
    login(words[1]);
    statement("SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum");
    statement("SET @mariadb_slave_capability = 4");
    statement("SET @master_heartbeat_period = 10000000000, @source_heartbeat_period = 10000000000");
    uint32_t id = (uint32_t)strtoul(words[2], NULL, 10), position = (uint32_t)strtoul(words[4], NULL, 10);
    uint16_t flags = count > 5 ? 0 : NON_BLOCK;
    unsigned char body[512] = {COM_BINLOG_DUMP};
    memcpy(body + 1, &position, 4);
    memcpy(body + 5, &flags, 2);
    memcpy(body + 7, &id, 4);
    size_t name = strlen(words[3]);
    if (name > 400) fail("the name is too long");
    memcpy(body + 11, words[3], name);
    long started = now();
    put(0, body, 11 + name);
    uint64_t bytes = 0, events = 0;
    for (;;) {
        char text[512];
        int first;
        uint32_t length = packet(&first, NULL, 0);
        bytes += length;
        events++;
        if (first == 0xff) fail("the server answers with an error");
        if (first == 0xfe && length < 9) break;
        while (length == 0xffffff) { /* the rest of a long event */
            length = packet(&first, text, 1);
            bytes += length;
        }
    }
    printf("%lu %lu %ld\n", (unsigned long)bytes, (unsigned long)events, now() - started);
    return 0;
}
