package node

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Addresses are read every pollInterval and after each event. There is a pause of minReadInterval after
// each reading, because a busy host may have thousands of events per second, and each start of a pod
// causes several events.
const (
	pollInterval    = 10 * time.Second
	minReadInterval = 500 * time.Millisecond
)

// storeTimeout is how long Run waits for a write to the file when ctx is done, because a
// disk may not respond at all.
const storeTimeout = time.Second

// AddressOptions configure how the addresses of a node are determined.
type AddressOptions struct {
	// NodeIPs contains the addresses of --node-ip, which are used even if the host does not have
	// them. 0.0.0.0 or :: alone means any address of that family. If NodeIPs is empty, an address
	// of any family is used.
	NodeIPs []netip.Addr
	// Name is the node's name. As in a kubelet, an address to which the name resolves takes
	// precedence over other addresses. If Name is "", podd does not resolve the name.
	Name string
	// File is the path of the file in which an address found by a route or by the node's name
	// is stored for the next start; "" means that no address is stored. The directory of the
	// file must exist.
	File string
	Log  *slog.Logger

	// Tests replace these functions. If they are nil, the AddressWatcher reads the host, receives
	// the kernel's events and writes the file.
	read        func(context.Context) hostAddresses
	watchEvents func(ctx context.Context, wakeCh chan<- struct{}) error
	write       func(path string, c choice) error
}

// An AddressWatcher determines the addresses of the node and follows their changes.
type AddressWatcher struct {
	o       AddressOptions
	family  family
	current atomic.Pointer[Addresses] // result of the method Addresses

	// The following fields belong to Run's goroutine.
	choice      choice
	stored      choice       // the choice that the file contains or that is being written to the file
	writeResult <-chan error // receives the result of the write in progress; nil if there is none
}

// NewAddressWatcher determines the current addresses from the address in File and from the host,
// and stores the address that it chooses. If Name is set, it may block for a second to resolve the
// name. It also blocks while the disk does not respond.
func NewAddressWatcher(ctx context.Context, o AddressOptions) *AddressWatcher {
	if o.read == nil {
		name := o.Name
		o.read = func(ctx context.Context) hostAddresses { return readHostAddresses(ctx, name) }
	}
	if o.watchEvents == nil {
		o.watchEvents = watchRouteEvents
	}
	if o.write == nil {
		o.write = writeChoice
	}
	f := &AddressWatcher{o: o}
	if len(o.NodeIPs) == 1 && o.NodeIPs[0].IsUnspecified() {
		f.family = onlyIPv6
		if o.NodeIPs[0].Is4() {
			f.family = onlyIPv4
		}
		f.o.NodeIPs = nil
	}
	f.load()
	f.current.Store(new(f.chooseAddresses(o.read(ctx))))
	if f.store(); f.writeResult != nil {
		f.endWrite(<-f.writeResult)
	}
	return f
}

// load makes the address in the file the current choice if its family is allowed.
func (f *AddressWatcher) load() {
	if f.o.File == "" {
		return
	}
	var err error
	if f.stored, err = readChoice(f.o.File); err != nil {
		f.o.Log.Warn("loading the stored node address failed; using an address that the host has now", "err", err)
	}
	if f.family.allows(f.stored.ip) {
		f.choice = f.stored
	}
}

// store begins to write the choice to the file if the choice has changed and was found by a route
// or by the node's name. It does nothing while a write is in progress, because endWrite calls store
// again. After a failed write, store does not try again until the choice changes.
func (f *AddressWatcher) store() {
	if f.o.File == "" || !f.choice.isFromRouteOrName() || f.choice == f.stored || f.writeResult != nil {
		return
	}
	f.stored = f.choice
	result, c := make(chan error, 1), f.choice
	// A call that waits for a disk cannot be interrupted, so this goroutine may outlive Run.
	go func() { result <- f.o.write(f.o.File, c) }()
	f.writeResult = result
}

// endWrite handles the result err of the write in progress, and begins to store a newer choice.
func (f *AddressWatcher) endWrite(err error) {
	f.writeResult = nil
	if err != nil {
		f.o.Log.Warn("storing the node address failed; if podd restarts while the host has no default route, the address may change", "err", err)
	}
	f.store()
}

// finishWrites waits until the newest choice is stored, but no longer than storeTimeout.
func (f *AddressWatcher) finishWrites() {
	timer := time.NewTimer(storeTimeout)
	defer timer.Stop()
	for f.writeResult != nil {
		select {
		case err := <-f.writeResult:
			f.endWrite(err)
		case <-timer.C:
			f.o.Log.Warn("storing the node address failed because the disk does not respond; stopping without storing the address", "file", f.o.File)
			return
		}
	}
}

// Addresses returns the current addresses. It is safe for concurrent use.
func (f *AddressWatcher) Addresses() Addresses { return *f.current.Load() }

// Run calls onChange with the current addresses, and then after each change until ctx is done.
func (f *AddressWatcher) Run(ctx context.Context, onChange func(Addresses)) {
	wakeCh := make(chan struct{}, 1)
	var events sync.WaitGroup
	defer events.Wait()
	events.Go(func() { f.followEvents(ctx, wakeCh) })
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	defer f.finishWrites()
	onChange(f.Addresses())
	for {
		f.update(ctx, onChange)
		if !sleep(ctx, minReadInterval) || !f.wait(ctx, wakeCh, tick.C) {
			return
		}
	}
}

// wait handles the results of writes until the next reading is due. It returns false if ctx
// is done first.
func (f *AddressWatcher) wait(ctx context.Context, wakeCh <-chan struct{}, tick <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-wakeCh:
			return true
		case <-tick:
			return true
		case err := <-f.writeResult:
			f.endWrite(err)
		}
	}
}

// update reads the addresses once and stores the choice. If the addresses have changed, it calls
// onChange. It ignores a reading that failed.
func (f *AddressWatcher) update(ctx context.Context, onChange func(Addresses)) {
	r := f.o.read(ctx)
	if r.readFailed || ctx.Err() != nil {
		return
	}
	before, after := f.Addresses(), f.chooseAddresses(r)
	if !after.equal(before) {
		f.current.Store(&after)
		f.o.Log.Info("node addresses changed", "was", before, "is", after, "problem", after.Problem)
		onChange(after)
	}
	f.store()
}

// chooseAddresses returns the addresses of the node, given the addresses r of the host, and updates
// f.choice unless the user has set the addresses.
func (f *AddressWatcher) chooseAddresses(r hostAddresses) Addresses {
	if len(f.o.NodeIPs) > 0 {
		return givenAddresses(f.o.NodeIPs, r)
	}
	f.choice = f.choice.next(f.family, r)
	return f.choice.addresses(r)
}

// followEvents sends a value to wakeCh after each event until ctx is done. If events cannot be
// received, it tries again every pollInterval.
func (f *AddressWatcher) followEvents(ctx context.Context, wakeCh chan<- struct{}) {
	for logged := false; ; {
		err := f.o.watchEvents(ctx, wakeCh)
		if ctx.Err() != nil {
			return
		}
		if !logged {
			logged = true
			f.o.Log.Warn("receiving the kernel's events about addresses failed; polling instead", "every", pollInterval, "err", err)
		}
		if !sleep(ctx, pollInterval) {
			return
		}
	}
}

// sleep waits for d. It returns false if ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
