/* Makes every device sync of a program slower: LD_PRELOAD this, set SLOW_SYNC_US.
 *
 * Counts them too: SYNC_COUNT_FILE names a file of 8 bytes whose first is a little-endian counter.
 * A sync is fsync, fdatasync, or a positioned write through a descriptor opened with O_SYNC or
 * O_DSYNC. The delay comes after the real call, as a device's would; with SLOW_SYNC_BEFORE=1 the delay of a write
 * comes before it, so that a killed process loses what was on its way. SLOW_SYNC_US_FILE names a file of 8 bytes that holds
 * the delay instead, little-endian, to be changed while the program runs. Built by the benchmark and the tests
 * themselves: cc -O2 -shared -fPIC -o slow_sync.so slow_sync.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The 8 bytes of the file that an environment variable names, shared with whoever else maps it. */
static uint64_t *shared_number(const char *variable) {
    const char *path = getenv(variable);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return NULL;
    void *mapped = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static long delay_us(void) {
    static long us = -1;
    static uint64_t *changing = NULL;
    if (us < 0) changing = shared_number("SLOW_SYNC_US_FILE");
    if (us < 0) {
        const char *text = getenv("SLOW_SYNC_US");
        us = text ? atol(text) : 1000;
    }
    if (changing) return (long)__atomic_load_n(changing, __ATOMIC_RELAXED);
    return us;
}

static void count(void) {
    static uint64_t *counter = NULL;
    static int tried = 0;
    if (!tried) {
        tried = 1;
        counter = shared_number("SYNC_COUNT_FILE");
    }
    if (counter) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void slow(void) {
    int saved = errno;
    long us = delay_us();
    count();
    if (us <= 0) {
        errno = saved;
        return;
    }
    struct timespec left = { us / 1000000, (us % 1000000) * 1000 };
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    errno = saved;
}

static int syncs_on_write(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & (O_DSYNC | O_SYNC)) != 0;
}

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

int fsync(int fd) {
    int result = REAL(fsync)(fd);
    slow();
    return result;
}

int fdatasync(int fd) {
    int result = REAL(fdatasync)(fd);
    slow();
    return result;
}

static int before(void) {
    static int set = -1;
    if (set < 0) set = getenv("SLOW_SYNC_BEFORE") != NULL;
    return set;
}

/* A positioned write, slow on the side that was asked for if it syncs. */
#define WRITE(call) \
    int syncs = syncs_on_write(fd); \
    if (syncs && before()) slow(); \
    ssize_t result = (call); \
    if (syncs && !before()) slow(); \
    return result

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    WRITE(REAL(pwrite)(fd, data, size, offset));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    WRITE(REAL(pwrite64)(fd, data, size, offset));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    WRITE(REAL(pwritev)(fd, parts, count, offset));
}
