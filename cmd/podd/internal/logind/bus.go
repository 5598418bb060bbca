package logind

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
)

// callTimeout limits a D-Bus call.
const callTimeout = 10 * time.Second

const (
	manager = "org.freedesktop.login1.Manager"
	systemd = "org.freedesktop.systemd1.Manager"
	unit    = "systemd-logind.service"
	prepare = "PrepareForShutdown"
)

// bus is a connection to the system bus.
type bus struct {
	conn    *dbus.Conn
	logind  dbus.BusObject
	systemd dbus.BusObject
	wake    signalHandler
}

// A signalHandler receives at most one element when a signal may have come from logind.
// Other clients of the bus can send the same signals, so their content is not used.
type signalHandler chan struct{}

// DeliverSignal implements dbus.SignalHandler.
func (w signalHandler) DeliverSignal(iface, member string, _ *dbus.Signal) {
	if iface != manager || member != prepare {
		return
	}
	select {
	case w <- struct{}{}:
	default:
	}
}

// open connects to address, or to the system bus if it is empty, and subscribes to
// signals.
func open(ctx context.Context, address string) (*bus, error) {
	wake := make(signalHandler, 1)
	dial := func(o ...dbus.ConnOption) (*dbus.Conn, error) { return dbus.Dial(address, o...) }
	if address == "" {
		dial = dbus.SystemBusPrivate
	}
	conn, err := dial(dbus.WithContext(ctx), dbus.WithSignalHandler(wake))
	if err != nil {
		return nil, fmt.Errorf("connecting to the system's bus: %w", err)
	}
	// By UID, because a name would be looked up.
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
		err = conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(b.logind.Destination()), dbus.WithMatchInterface(manager), dbus.WithMatchMember(prepare), dbus.WithMatchObjectPath(b.logind.Path()))
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("speaking on the system's bus: %w", err)
	}
	return b, nil
}

// inhibit takes a delay lock; closing it releases the lock.
func (b *bus) inhibit(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var fd dbus.UnixFD
	if err := b.logind.CallWithContext(ctx, manager+".Inhibit", 0, "shutdown", "podd", "ends the pods first", "delay").Store(&fd); err != nil {
		return nil, fmt.Errorf("having logind wait with a shutdown: %w", err)
	}
	return os.NewFile(uintptr(fd), "inhibitor"), nil
}

// property reads a property of an object.
func property[T any](ctx context.Context, of dbus.BusObject, iface, name string) (value T, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var v dbus.Variant
	if err = of.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, iface, name).Store(&v); err != nil {
		return value, fmt.Errorf("reading %s of %s: %w", name, of.Destination(), err)
	}
	value, ok := v.Value().(T)
	if !ok {
		return value, fmt.Errorf("reading %s of %s: it is a %T", name, of.Destination(), v.Value())
	}
	return value, nil
}

// maxDelay returns the longest time that logind waits.
func (b *bus) maxDelay(ctx context.Context) (time.Duration, error) {
	us, err := property[uint64](ctx, b.logind, manager, "InhibitDelayMaxUSec")
	return time.Duration(min(us, uint64(1<<62/time.Microsecond))) * time.Microsecond, err
}

// isPreparing reports whether a shutdown is in progress.
func (b *bus) isPreparing(ctx context.Context) (bool, error) {
	return property[bool](ctx, b.logind, manager, "PreparingForShutdown")
}

// reload makes logind reload its configuration.
func (b *bus) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	const hangup = int32(1)
	if err := b.systemd.CallWithContext(ctx, systemd+".KillUnit", 0, unit, "all", hangup).Err; err != nil {
		return fmt.Errorf("having logind read its configuration: %w", err)
	}
	return nil
}

// isStopping reports whether systemd is past the point at which a shutdown can be
// cancelled.
func (b *bus) isStopping(ctx context.Context) bool {
	state, err := property[string](ctx, b.systemd, systemd, "SystemState")
	return err != nil || state == "stopping" // systemd does not respond if it has stopped
}
