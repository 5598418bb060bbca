package node

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAddressFollower_Restart starts a follower for each reading, with the file that the previous
// follower has written.
func TestAddressFollower_Restart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []string // "reading -> address", with "!" if there is a Problem
	}{
		{"before DHCP", []string{"10.0.0.1 default=10.0.0.1 -> 10.0.0.1", " -> 10.0.0.1!", "10.0.0.2 default=10.0.0.2 -> 10.0.0.2", " -> 10.0.0.2!"}},
		{"a bridge before DHCP", []string{"10.0.0.1 default=10.0.0.1 -> 10.0.0.1", "10.88.0.1 -> 10.0.0.1!", "10.88.0.1 10.0.0.1 -> 10.0.0.1"}},
		{"never a default route", []string{"10.88.0.1 -> 10.88.0.1", "10.89.0.1 -> 10.89.0.1", " -> 127.0.0.1"}},
		{"IPv6 before IPv4", []string{"fd00::1 10.0.0.1 default=fd00::1 default=10.0.0.1 -> 10.0.0.1", "fd00::1 default=fd00::1 -> 10.0.0.1!"}},
		{"no response from the resolver", []string{
			"10.0.0.1 10.1.0.1 default=10.0.0.1 name=10.1.0.1 -> 10.1.0.1", "10.0.0.1 10.1.0.1 default=10.0.0.1 name=? -> 10.1.0.1"}},
		{"name resolves no more", []string{
			"10.0.0.1 10.1.0.1 default=10.0.0.1 name=10.1.0.1 -> 10.1.0.1", "10.0.0.1 10.1.0.1 default=10.0.0.1 -> 10.0.0.1"}},
		{"addresses cannot be read", []string{"10.0.0.1 default=10.0.0.1 -> 10.0.0.1", "failed -> 10.0.0.1"}},
	} {
		file := filepath.Join(t.TempDir(), "node-address")
		for i, step := range tt.steps {
			on, want, _ := strings.Cut(step, "-> ")
			a := start(t, AddressOptions{File: file}, on).Addresses()
			got := a.String()
			if a.Problem != "" {
				got += "!"
			}
			if got != want {
				t.Errorf("%s, step %d: got %s, want %s", tt.name, i+1, got, want)
				break
			}
		}
	}
}

// start returns a follower of a host that does not change.
func start(t *testing.T, o AddressOptions, on string) *AddressWatcher {
	t.Helper()
	r := host(t, on)
	o.read = func(context.Context) hostAddresses { return r }
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return NewAddressWatcher(t.Context(), o)
}

func TestAddressFollower_RestartAfterChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node-address")
	withFollower(t, AddressOptions{File: file}, func(h *fakeHost, f *AddressWatcher, reported func() string) {
		h.set("10.0.0.1 default=10.0.0.1")
		h.wake <- struct{}{}
		time.Sleep(time.Second)
		if a := start(t, AddressOptions{File: file}, "10.88.0.1").Addresses(); a.String() != "10.0.0.1" {
			t.Errorf("address after the next start: got %s, want 10.0.0.1", a)
		}
	})
}

// TestAddressFollower_HangingDisk checks that a write that hangs delays neither new addresses nor
// the return of Run. The newest address is stored when the disk responds.
func TestAddressFollower_HangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{t: t, wake: make(chan struct{})}
		h.set("")
		written := make(chan string)
		o := AddressOptions{
			File: "node-address", Log: slog.New(slog.DiscardHandler), read: h.read, watchEvents: h.events,
			write: func(_ string, c choice) error { written <- c.ip.String(); return nil },
		}
		f := NewAddressWatcher(t.Context(), o)
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { f.Run(ctx, func(Addresses) {}) })
		for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			h.set(ip + " default=" + ip)
			h.wake <- struct{}{}
			time.Sleep(time.Second)
			if got := f.Addresses().String(); got != ip {
				t.Errorf("while the disk hangs: got %s, want %s", got, ip)
			}
		}
		for _, want := range []string{"10.0.0.1", "10.0.0.3"} {
			if got := <-written; got != want {
				t.Errorf("stored address: got %s, want %s", got, want)
			}
		}
		h.set("10.0.0.4 default=10.0.0.4")
		h.wake <- struct{}{}
		time.Sleep(time.Second)
		cancel()
		began := time.Now()
		run.Wait()
		if took := time.Since(began); took > storeTimeout {
			t.Errorf("time until Run returned: got %v, want at most %v", took, storeTimeout)
		}
		<-written
	})
}

// TestAddressFollower_RestartWithFlag checks that --node-ip takes precedence over a stored
// address.
func TestAddressFollower_RestartWithFlag(t *testing.T) {
	for flag, want := range map[string]string{"": "10.0.0.1", "0.0.0.0": "10.0.0.1", "::": "fd00::1", "10.0.0.9": "10.0.0.9"} {
		file := filepath.Join(t.TempDir(), "node-address")
		start(t, AddressOptions{File: file}, "10.0.0.1 default=10.0.0.1")
		o := AddressOptions{File: file}
		if flag != "" {
			o.NodeIPs = []netip.Addr{netip.MustParseAddr(flag)}
		}
		if a := start(t, o, "fd00::1 default=fd00::1").Addresses(); a.String() != want {
			t.Errorf("--node-ip %q: got %s, want %s", flag, a, want)
		}
	}
}

func TestAddressFollower_BrokenFile(t *testing.T) {
	for _, content := range []string{"", "10.0.0.1", "{}", `{"ip":"x"}`, `{"ip":"127.0.0.1"}`} {
		file, log := filepath.Join(t.TempDir(), "node-address"), &strings.Builder{}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		o := AddressOptions{File: file, Log: slog.New(slog.NewTextHandler(log, nil))}
		if a := start(t, o, "10.0.0.2 default=10.0.0.2").Addresses(); a.String() != "10.0.0.2" || !strings.Contains(log.String(), file) {
			t.Errorf("%q: got address %s and log %s; want 10.0.0.2 and the name of the file", content, a, log)
		}
		if a := start(t, AddressOptions{File: file}, "").Addresses(); a.String() != "10.0.0.2" {
			t.Errorf("%q: address after the next start: got %s, want 10.0.0.2", content, a)
		}
	}
}

// TestAddressFollower_UnwritableFile checks that an address that cannot be stored is used.
func TestAddressFollower_UnwritableFile(t *testing.T) {
	log := &strings.Builder{}
	o := AddressOptions{File: filepath.Join(t.TempDir(), "none", "node-address"), Log: slog.New(slog.NewTextHandler(log, nil))}
	if a := start(t, o, "10.0.0.1 default=10.0.0.1").Addresses(); a.String() != "10.0.0.1" || !strings.Contains(log.String(), "storing the node's address") {
		t.Errorf("got address %s and log %s; want 10.0.0.1 and an error of storing", a, log)
	}
}
