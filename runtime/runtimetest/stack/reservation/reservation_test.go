package reservation

import (
	"net/netip"
	"os"
	"sync"
	"testing"
)

func table(t *testing.T, used ...string) *Table {
	t.Helper()
	return &Table{Dir: t.TempDir(), UsedSubnets: func() ([]netip.Prefix, error) {
		var all []netip.Prefix
		for _, u := range used {
			all = append(all, netip.MustParsePrefix(u))
		}
		return all, nil
	}}
}

func take(t *testing.T, table *Table) Reservation {
	t.Helper()
	r, err := table.Take(t.TempDir(), "state", Owner{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTake_AvoidsUsedSubnets(t *testing.T) {
	for _, test := range []struct {
		name, want string
		used       []string
	}{
		{"no subnet in use", "10.88.0.0/22", nil},
		{"other subnets in use", "10.88.0.0/22", []string{"192.168.0.0/16", "10.96.0.0/12", "fd00::/8"}},
		{"first subnet in use", "10.88.4.0/22", []string{"10.88.0.0/22"}},
		{"part of the first subnet in use", "10.88.4.0/22", []string{"10.88.3.128/25"}},
		{"all of the first range in use", "10.188.0.0/22", []string{"10.88.0.0/16"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := take(t, table(t, test.used...)); got.Subnet.String() != test.want {
				t.Errorf("with %v in use: got %s, want %s", test.used, got.Subnet, test.want)
			}
		})
	}
}

func TestTake_AllSubnetsUsed(t *testing.T) {
	if r, err := table(t, "10.0.0.0/8").Take(t.TempDir(), "state", Owner{}); err == nil {
		t.Errorf("Take with all subnets in use: got %s, want an error", r.Subnet)
	}
}

func TestTake_Concurrent(t *testing.T) {
	table := table(t)
	reservations, errs := make([]Reservation, 20), make([]error, 20)
	dir := t.TempDir()
	var wait sync.WaitGroup
	for i := range reservations {
		wait.Go(func() { reservations[i], errs[i] = table.Take(dir, "state", Owner{}) })
	}
	wait.Wait()
	seen := map[netip.Prefix]bool{}
	for i, r := range reservations {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if seen[r.Subnet] {
			t.Errorf("concurrent calls of Take: got subnet %s twice, want different subnets", r.Subnet)
		}
		seen[r.Subnet] = true
	}
}

func TestRelease(t *testing.T) {
	table := table(t)
	var first, last int
	table.BeforeFirst = func() error { first++; return nil }
	table.AfterLast = func() error { last++; return nil }
	a, b := take(t, table), take(t, table)
	for _, r := range []Reservation{a, a, b} { // the second Release of a must do nothing
		if err := table.Release(r); err != nil {
			t.Fatal(err)
		}
	}
	if first != 1 || last != 1 {
		t.Errorf("got %d calls of BeforeFirst and %d of AfterLast; want 1 of each", first, last)
	}
	if again := take(t, table); again.Number != a.Number {
		t.Errorf("Take after Release: got number %d, want the released number %d", again.Number, a.Number)
	}
}

func TestRelease_NumberTakenAgain(t *testing.T) {
	table := table(t)
	a := take(t, table)
	if err := table.Release(a); err != nil {
		t.Fatal(err)
	}
	b := take(t, table)
	if err := table.Release(a); err != nil {
		t.Fatal(err)
	}
	all, err := table.All()
	if err != nil || len(all) != 1 || all[0] != b {
		t.Errorf("reservations after a second Release of a number that was taken again: got %v (error %v), want only %v", all, err, b)
	}
}

func TestSetOwner_ReleasedReservation(t *testing.T) {
	table := table(t)
	r := take(t, table)
	if err := table.Release(r); err != nil {
		t.Fatal(err)
	}
	if ok, err := table.SetOwner(r, self(t)); ok || err != nil {
		t.Errorf("SetOwner of a released reservation: got %t (error %v), want false", ok, err)
	}
	if all, err := table.All(); len(all) > 0 || err != nil {
		t.Errorf("reservations after Release and SetOwner: got %v (error %v), want none", all, err)
	}
}

func TestStale(t *testing.T) {
	self := self(t)
	dead := Owner{PID: os.Getpid(), Started: "1"} // has exited, and another process has its PID now
	there, gone := t.TempDir(), t.TempDir()+"/gone"
	for _, test := range []struct {
		name        string
		reservation Reservation
		want        bool
	}{
		{"owner runs and has no state yet", Reservation{StateFile: gone, Owner: self}, false},
		{"owner has exited", Reservation{StateFile: there, Owner: dead}, true},
		{"detached", Reservation{StateFile: there}, false},
		{"detached and removed", Reservation{StateFile: gone}, true},
	} {
		if got := test.reservation.isStale(); got != test.want {
			t.Errorf("%s: got stale: %v, want %v", test.name, got, test.want)
		}
	}
}

func self(t *testing.T) Owner {
	t.Helper()
	self, err := CurrentProcess()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func TestTakeOver_Once(t *testing.T) {
	table := table(t)
	r := take(t, table) // stale, because it has no owner and its state file does not exist
	for _, want := range []bool{true, false} {
		if got, err := table.TakeOver(r, self(t)); got != want || err != nil {
			t.Errorf("TakeOver of a stale reservation: got %t (error %v), want %t", got, err, want)
		}
	}
}

func TestTakeOver_DetachedReservation(t *testing.T) {
	table := table(t)
	dir := t.TempDir()
	r, err := table.Take(dir, dir, self(t))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := table.SetOwner(r, Owner{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	r.Owner = Owner{}
	if got, err := table.TakeOver(r, self(t)); got || err != nil {
		t.Errorf("TakeOver of a detached reservation: got %t (error %v), want false", got, err)
	}
}

func TestParseRoute(t *testing.T) {
	got, ok := parseRoute("eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0")
	if want := netip.MustParsePrefix("192.0.2.0/24"); !ok || got != want {
		t.Errorf("route: got subnet %s, valid: %t; want subnet %s, valid: true", got, ok, want)
	}
	if got, ok := parseRoute("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask"); ok {
		t.Errorf("heading line: got %s, want none", got)
	}
}
