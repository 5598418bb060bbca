package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"podd/cmd/podd/internal/dynconfig"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// notifySystemd sends state to systemd. Without systemd it does nothing.
func notifySystemd(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("notifying systemd failed", "state", state, "err", err)
	}
}

// mayContinue reports whether podd's parts may start again in this process after they have stopped with
// the error err. cause is the cause of the end of the context, or nil. isDynamic is set with dynamic
// configuration: podd may then return to an earlier configuration.
func mayContinue(err, cause error, isDynamic bool) bool {
	_, isRenamed := errors.AsType[*renamedError](err)
	return isRenamed || errors.Is(cause, dynconfig.ErrReload) || isDynamic && cause == nil
}

// stopState returns the state to send to systemd when podd's parts have stopped. isReload is set if they
// may start again in this process. systemd would kill podd some time after the state STOPPING=1.
func stopState(isReload bool) string {
	if !isReload {
		return systemd.SdNotifyStopping
	}
	return systemd.SdNotifyReloading + "\n" + systemd.SdNotifyMonotonicUsec()
}

// beatInterval returns the interval of the router's heartbeat. The result is at most half the
// interval of systemd's watchdog, so that systemd does not restart podd while the router works.
func beatInterval(log *slog.Logger) time.Duration {
	watchdog, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("reading systemd's watchdog interval failed; using the default heartbeat interval", "err", err)
	}
	if watchdog > 0 {
		return min(watchdog/2, heartbeatInterval)
	}
	return heartbeatInterval
}

// A statusNotifier reports the router's heartbeat and the status line to systemd. Only the
// router's goroutine calls it.
type statusNotifier struct {
	state server.Viewer
	beats *heartbeat
	log   *slog.Logger

	lastStatus string // status line that was last sent
}

// beat reports that the router has completed an iteration.
func (n *statusNotifier) beat() {
	n.beats.beat()
	notifySystemd(n.log, systemd.SdNotifyWatchdog)
	if status := statusLine(n.state.View()); status != n.lastStatus {
		n.lastStatus = status
		notifySystemd(n.log, "STATUS="+status)
	}
}

// statusLine returns a line such as "3 pods, 2 ready, 1 problem".
func statusLine(v *server.View) string {
	ready, problems := 0, len(v.Problems)
	for _, p := range v.Pods {
		if p.Ready {
			ready++
		}
		if p.NeedsUser {
			problems++
		}
	}
	return fmt.Sprintf("%s, %d ready, %s", printer.FormatCount(len(v.Pods), "pod"), ready, printer.FormatCount(problems, "problem"))
}
