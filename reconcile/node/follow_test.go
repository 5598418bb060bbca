package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeHost is a host with addresses that a test changes.
type fakeHost struct {
	t    *testing.T
	wake chan struct{}

	mu    sync.Mutex // guards all following fields
	now   hostAddresses
	reads int
}

func (h *fakeHost) set(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = host(h.t, text)
}

// fail makes readings fail.
func (h *fakeHost) fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = hostAddresses{readFailed: true}
}

func (h *fakeHost) read(context.Context) hostAddresses {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	return h.now
}

func (h *fakeHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.reads
	h.reads = 0
	return n
}

// events forwards the events that the test sends.
func (h *fakeHost) events(ctx context.Context, wake chan<- struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.wake:
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}
}

// withFollower runs test with a follower of a fake host. reported returns the addresses that the
// follower has reported so far.
func withFollower(t *testing.T, o AddressOptions, test func(h *fakeHost, f *AddressWatcher, reported func() string)) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{t: t, wake: make(chan struct{})}
		h.set("")
		o.read, o.Log = h.read, slog.New(slog.DiscardHandler)
		if o.watchEvents == nil {
			o.watchEvents = h.events
		}
		f := NewAddressWatcher(t.Context(), o)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var all []string
		var run sync.WaitGroup
		run.Go(func() {
			f.Run(ctx, func(a Addresses) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, a.String())
			})
		})
		time.Sleep(time.Second)
		test(h, f, func() string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(all, " ")
		})
		cancel()
		run.Wait()
	})
}

func TestAddressFollower(t *testing.T) {
	withFollower(t, AddressOptions{}, func(h *fakeHost, f *AddressWatcher, reported func() string) {
		if got := reported(); got != "127.0.0.1" {
			t.Errorf("reported at first: got %s, want 127.0.0.1", got)
		}
		h.set("10.0.0.1 default=10.0.0.1")
		h.wake <- struct{}{}
		if got := reported(); got != "127.0.0.1 10.0.0.1" || f.Addresses().String() != "10.0.0.1" {
			t.Errorf("after an event: got reports %s and address %s; want reports 127.0.0.1 10.0.0.1 and address 10.0.0.1", got, f.Addresses())
		}
		time.Sleep(time.Second)
		h.set("10.0.0.2 default=10.0.0.2")
		time.Sleep(pollInterval)
		if got := reported(); got != "127.0.0.1 10.0.0.1 10.0.0.2" {
			t.Errorf("reported after a lost event: got %s, want 10.0.0.2 as the last", got)
		}
		h.set("")
		h.wake <- struct{}{}
		time.Sleep(time.Second)
		if a := f.Addresses(); a.String() != "10.0.0.2" || !strings.Contains(a.Problem, "lost the address 10.0.0.2") {
			t.Errorf("without an address: got %s with problem %q; want 10.0.0.2 with a problem", a, a.Problem)
		}
		h.fail()
		h.wake <- struct{}{}
		time.Sleep(time.Second)
		if a := f.Addresses(); a.Problem == "" {
			t.Errorf("after a failed reading: got %s, problem %q; want both unchanged", a, a.Problem)
		}
	})
}

// TestAddressFollower_Flood checks a follower that receives events without a pause.
func TestAddressFollower_Flood(t *testing.T) {
	withFollower(t, AddressOptions{}, func(h *fakeHost, f *AddressWatcher, reported func() string) {
		h.count()
		for range 1000 {
			h.wake <- struct{}{}
			time.Sleep(time.Millisecond)
		}
		if n := h.count(); n < 2 || n > 4 {
			t.Errorf("readings in a second: got %d, want 2 to 4", n)
		}
	})
}

func TestAddressFollower_WithoutEvents(t *testing.T) {
	o := AddressOptions{watchEvents: func(context.Context, chan<- struct{}) error { return errors.New("too many open files") }}
	withFollower(t, o, func(h *fakeHost, f *AddressWatcher, reported func() string) {
		h.set("10.0.0.1 default=10.0.0.1")
		time.Sleep(pollInterval)
		if got := reported(); got != "127.0.0.1 10.0.0.1" {
			t.Errorf("got %s, want the address found by polling", got)
		}
	})
}

func TestAddressFollower_Given(t *testing.T) {
	ip := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	withFollower(t, AddressOptions{NodeIPs: ip}, func(h *fakeHost, f *AddressWatcher, reported func() string) {
		if a := f.Addresses(); !slices.Equal(a.IPs, ip) || a.Problem == "" {
			t.Errorf("before the host has the address: got %s with problem %q; want %v with a problem", a, a.Problem, ip)
		}
		h.set("10.0.0.1 10.0.0.2 default=10.0.0.2")
		h.wake <- struct{}{}
		time.Sleep(time.Second)
		if a := f.Addresses(); !slices.Equal(a.IPs, ip) || a.Problem != "" {
			t.Errorf("after the host has the address: got %s with problem %q; want %v without one", a, a.Problem, ip)
		}
	})
}
