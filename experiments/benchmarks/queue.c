/* The queue with four servers, by hand: a binary heap of events, a chain of customers, and nothing else.

   Events of one instant are in the order of their kind (served before arrived), then in that in which they were planned,
   as in the other forms.  Arrivals and service times are those of the caller, in nanoseconds. */

#include <stdint.h>
#include <stdlib.h>

enum { SERVED, ARRIVED };

typedef struct {
    int64_t time_ns;
    int64_t order; /* kind, then number */
} Event;

typedef struct {
    int64_t arrived_ns, service_ns;
    int32_t next;
} Customer;

static Event *heap;
static int64_t length, number;

static int before(Event a, Event b) { return a.time_ns < b.time_ns || (a.time_ns == b.time_ns && a.order < b.order); }

static void plan(int64_t time_ns, int64_t kind) {
    Event event = {time_ns, (kind << 48) | number++};
    int64_t here = length++;
    while (here > 0 && before(event, heap[(here - 1) / 2])) {
        heap[here] = heap[(here - 1) / 2];
        here = (here - 1) / 2;
    }
    heap[here] = event;
}

static Event next_event(void) {
    Event first = heap[0], last = heap[--length];
    int64_t here = 0, child;
    while ((child = 2 * here + 1) < length) {
        if (child + 1 < length && before(heap[child + 1], heap[child])) child++;
        if (!before(heap[child], last)) break;
        heap[here] = heap[child];
        here = child;
    }
    heap[here] = last;
    return first;
}

/* Return the sum of all waiting times, -1 without memory. */
int64_t waited(int64_t count, const int64_t *gaps, const int64_t *services, int64_t servers) {
    Customer *customers = malloc((count + 1) * sizeof *customers);
    heap = malloc((servers + 2) * sizeof *heap);
    length = number = 0;
    if (!customers || !heap) {
        free(customers);
        free(heap);
        return -1;
    }
    int64_t waited_ns = 0, idle = servers, come = 0;
    int32_t first = 0, last = 0, unused = 0, made = 0;
    plan(gaps[0], ARRIVED);
    while (length > 0) {
        Event event = next_event();
        if (event.order >> 48 == ARRIVED) {
            int32_t row = unused ? unused : ++made;
            unused = unused ? customers[row].next : 0;
            customers[row] = (Customer){event.time_ns, services[come++], 0};
            if (first) customers[last].next = row;
            else first = row;
            last = row;
        } else {
            idle++;
        }
        if (idle > 0 && first) {
            int32_t row = first;
            first = customers[row].next;
            waited_ns += event.time_ns - customers[row].arrived_ns;
            plan(event.time_ns + customers[row].service_ns, SERVED);
            customers[row].next = unused;
            unused = row;
            idle--;
        }
        if (event.order >> 48 == ARRIVED && come < count) plan(event.time_ns + gaps[come], ARRIVED);
    }
    free(customers);
    free(heap);
    return waited_ns;
}
