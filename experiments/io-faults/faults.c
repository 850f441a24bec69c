/* Lets the n-th file operation below one folder fail, in the process that has this library preloaded.

   cc -shared -fPIC -O1 -o faults.so faults.c -ldl
   LD_PRELOAD=faults.so PROGRAM, which calls faults_arm() by way of a foreign function interface.

   SQLite and Python both reach the C library through these symbols, so one counter orders the calls of both. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN = 1, CREATE = 2, WRITE = 4, SYNC = 8, RENAME = 16, UNLINK = 32, MKDIR = 64, READ = 128, STAT = 256 };
enum { DESCRIPTORS = 4096 };

static char folder[4096];
static size_t length;
static unsigned kinds;
static long first, calls;
static int number, lasts;
static char hit[4400];
static char ours[DESCRIPTORS];

void faults_arm(const char *where, unsigned which, long nth, int error, int stays) {
    calls = 0;
    hit[0] = 0;
    snprintf(folder, sizeof folder, "%s", where);
    length = strlen(folder);
    kinds = which;
    first = nth;
    number = error;
    lasts = stays;
}

long faults_calls(void) { return calls; }
const char *faults_hit(void) { return hit; }

static int inside(int base, const char *path) {
    if (!length || !path) return 0;
    if (path[0] == '/') return strncmp(path, folder, length) == 0;
    return base >= 0 && base < DESCRIPTORS && ours[base];
}

static int fails(unsigned kind, const char *what, const char *path) {
    if (!(kinds & kind)) return 0;
    calls++;
    if (calls != first && !(lasts && calls > first)) return 0;
    if (!hit[0]) snprintf(hit, sizeof hit, "%s %s", what, path ? path : "");
    errno = number;
    return 1;
}

static int here(int descriptor) { return length && descriptor >= 0 && descriptor < DESCRIPTORS && ours[descriptor]; }

#define REAL(name, type) \
    static type real; \
    if (!real) real = (type)dlsym(RTLD_NEXT, name)

static int opened(const char *symbol, int base, const char *path, int flags, mode_t mode) {
    typedef int (*Open)(int, const char *, int, ...);
    REAL("openat64", Open);
    int watched = inside(base, path);
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    if (watched && fails(writes ? OPEN | CREATE : OPEN, symbol, path)) return -1;
    int descriptor = real(base, path, flags, mode);
    if (descriptor >= 0 && descriptor < DESCRIPTORS) ours[descriptor] = (char)watched;
    return descriptor;
}

#define MODE \
    va_list more; \
    va_start(more, flags); \
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
    va_end(more)

int open(const char *path, int flags, ...) { MODE; return opened("open", AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; return opened("open", AT_FDCWD, path, flags, mode); }
int openat(int base, const char *path, int flags, ...) { MODE; return opened("open", base, path, flags, mode); }
int openat64(int base, const char *path, int flags, ...) { MODE; return opened("open", base, path, flags, mode); }

int close(int descriptor) {
    typedef int (*Close)(int);
    REAL("close", Close);
    if (descriptor >= 0 && descriptor < DESCRIPTORS) ours[descriptor] = 0;
    return real(descriptor);
}

#define ON_DESCRIPTOR(result, name, kind, parameters, ...) \
    result name parameters { \
        typedef result(*Type) parameters; \
        REAL(#name, Type); \
        if (here(descriptor) && fails(kind, #name, "")) return -1; \
        return real(__VA_ARGS__); \
    }

ON_DESCRIPTOR(ssize_t, write, WRITE, (int descriptor, const void *data, size_t size), descriptor, data, size)
ON_DESCRIPTOR(ssize_t, pwrite, WRITE, (int descriptor, const void *data, size_t size, off_t at), descriptor, data, size, at)
ON_DESCRIPTOR(ssize_t, pwrite64, WRITE, (int descriptor, const void *data, size_t size, off64_t at), descriptor, data, size, at)
ON_DESCRIPTOR(ssize_t, read, READ, (int descriptor, void *data, size_t size), descriptor, data, size)
ON_DESCRIPTOR(ssize_t, pread, READ, (int descriptor, void *data, size_t size, off_t at), descriptor, data, size, at)
ON_DESCRIPTOR(ssize_t, pread64, READ, (int descriptor, void *data, size_t size, off64_t at), descriptor, data, size, at)
ON_DESCRIPTOR(int, fsync, SYNC, (int descriptor), descriptor)
ON_DESCRIPTOR(int, fdatasync, SYNC, (int descriptor), descriptor)
ON_DESCRIPTOR(int, ftruncate, WRITE, (int descriptor, off_t size), descriptor, size)
ON_DESCRIPTOR(int, ftruncate64, WRITE, (int descriptor, off64_t size), descriptor, size)

ssize_t sendfile64(int descriptor, int source, off64_t *at, size_t size) {
    typedef ssize_t (*Type)(int, int, off64_t *, size_t);
    REAL("sendfile64", Type);
    if (here(descriptor) && fails(WRITE, "sendfile", "")) return -1;
    return real(descriptor, source, at, size);
}
ssize_t sendfile(int descriptor, int source, off_t *at, size_t size) { return sendfile64(descriptor, source, at, size); }

#define ON_PATH(name, kind, parameters, base, path, ...) \
    int name parameters { \
        typedef int(*Type) parameters; \
        REAL(#name, Type); \
        if (inside(base, path) && fails(kind, #name, path)) return -1; \
        return real(__VA_ARGS__); \
    }

ON_PATH(rename, RENAME, (const char *old, const char *new), AT_FDCWD, new, old, new)
ON_PATH(renameat, RENAME, (int base, const char *old, int to, const char *new), to, new, base, old, to, new)
ON_PATH(unlink, UNLINK, (const char *path), AT_FDCWD, path, path)
ON_PATH(unlinkat, UNLINK, (int base, const char *path, int flags), base, path, base, path, flags)
ON_PATH(rmdir, UNLINK, (const char *path), AT_FDCWD, path, path)
ON_PATH(mkdir, MKDIR, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
ON_PATH(mkdirat, MKDIR, (int base, const char *path, mode_t mode), base, path, base, path, mode)
ON_PATH(stat, STAT, (const char *path, struct stat *found), AT_FDCWD, path, path, found)
ON_PATH(stat64, STAT, (const char *path, struct stat64 *found), AT_FDCWD, path, path, found)
ON_PATH(lstat, STAT, (const char *path, struct stat *found), AT_FDCWD, path, path, found)
ON_PATH(lstat64, STAT, (const char *path, struct stat64 *found), AT_FDCWD, path, path, found)
ON_PATH(fstatat, STAT, (int base, const char *path, struct stat *found, int flags), base, path, base, path, found, flags)
ON_PATH(fstatat64, STAT, (int base, const char *path, struct stat64 *found, int flags), base, path, base, path, found, flags)
