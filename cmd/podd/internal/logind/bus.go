package logind

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
)

// callTimeout is the timeout of a D-Bus call.
const callTimeout = 10 * time.Second

// D-Bus interfaces and names.
const (
	logindManager            = "org.freedesktop.login1.Manager"
	systemdManager           = "org.freedesktop.systemd1.Manager"
	logindService            = "systemd-logind.service"
	prepareForShutdownSignal = "PrepareForShutdown"
)

// A bus is a connection to the system bus.
type bus struct {
	conn    *dbus.Conn
	logind  dbus.BusObject
	systemd dbus.BusObject
	wake    signalHandler
}

// A signalHandler is a channel of capacity 1 that receives an element after a PrepareForShutdown
// signal. The content of the signal is not used, because every client of the bus can send such a
// signal.
type signalHandler chan struct{}

// DeliverSignal implements dbus.SignalHandler.
func (w signalHandler) DeliverSignal(iface, member string, _ *dbus.Signal) {
	if iface != logindManager || member != prepareForShutdownSignal {
		return
	}
	select {
	case w <- struct{}{}:
	default:
	}
}

// openBus connects to the bus at an address and subscribes to PrepareForShutdown signals. If address
// is "", it connects to the system bus. The caller must close the bus.
func openBus(ctx context.Context, address string) (*bus, error) {
	wake := make(signalHandler, 1)
	dial := func(o ...dbus.ConnOption) (*dbus.Conn, error) { return dbus.Dial(address, o...) }
	if address == "" {
		dial = dbus.SystemBusPrivate
	}
	conn, err := dial(dbus.WithContext(ctx), dbus.WithSignalHandler(wake))
	if err != nil {
		return nil, fmt.Errorf("connecting to the system bus: %w", err)
	}
	// Authenticate with the UID, because a user name would need a lookup.
	err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	if err == nil {
		err = conn.Hello()
	}
	b := &bus{
		conn:    conn,
		logind:  conn.Object("org.freedesktop.login1", "/org/freedesktop/login1"),
		systemd: conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1"),
		wake:    wake,
	}
	if err == nil {
		err = conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(b.logind.Destination()), dbus.WithMatchInterface(logindManager), dbus.WithMatchMember(prepareForShutdownSignal), dbus.WithMatchObjectPath(b.logind.Path()))
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("authenticating to the system bus and subscribing to the shutdown signal of logind: %w", err)
	}
	return b, nil
}

// inhibit takes a delay lock of logind. Closing the returned file releases the lock.
func (b *bus) inhibit(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var fd dbus.UnixFD
	if err := b.logind.CallWithContext(ctx, logindManager+".Inhibit", 0, "shutdown", "podd", "Pods need time to stop", "delay").Store(&fd); err != nil {
		return nil, fmt.Errorf("taking an inhibitor lock of logind: %w", err)
	}
	return os.NewFile(uintptr(fd), "inhibitor"), nil
}

// readProperty returns the value of a property of an object. It returns an error if the type of the
// value is not T.
func readProperty[T any](ctx context.Context, object dbus.BusObject, iface, name string) (value T, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var v dbus.Variant
	if err = object.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, iface, name).Store(&v); err != nil {
		return value, fmt.Errorf("reading property %s of %s: %w", name, object.Destination(), err)
	}
	value, ok := v.Value().(T)
	if !ok {
		return value, fmt.Errorf("reading property %s of %s: unexpected type %T", name, object.Destination(), v.Value())
	}
	return value, nil
}

// readMaxDelay returns InhibitDelayMaxSec, the maximum time for which delay locks delay a shutdown.
func (b *bus) readMaxDelay(ctx context.Context) (time.Duration, error) {
	us, err := readProperty[uint64](ctx, b.logind, logindManager, "InhibitDelayMaxUSec")
	return time.Duration(min(us, uint64(1<<62/time.Microsecond))) * time.Microsecond, err
}

// isPreparing reports whether logind is preparing a shutdown of the host.
func (b *bus) isPreparing(ctx context.Context) (bool, error) {
	return readProperty[bool](ctx, b.logind, logindManager, "PreparingForShutdown")
}

// reload requests that logind reloads its configuration. It does not wait until logind has reloaded
// the configuration.
func (b *bus) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	const sighup = int32(1)
	if err := b.systemd.CallWithContext(ctx, systemdManager+".KillUnit", 0, logindService, "all", sighup).Err; err != nil {
		return fmt.Errorf("reloading the configuration of logind: %w", err)
	}
	return nil
}

// isStopping reports whether systemd is stopping the host. If so, the shutdown can no longer be
// cancelled.
func (b *bus) isStopping(ctx context.Context) bool {
	state, err := readProperty[string](ctx, b.systemd, systemdManager, "SystemState")
	return err != nil || state == "stopping" // true after an error, because systemd does not respond if it has already stopped
}
