package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"podd/server"
)

// notify tells systemd; outside of it, nothing happens.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("telling systemd", "state", state, "err", err)
	}
}

// beatEvery is how often the router shows that it turns: often enough for
// systemd's watchdog where there is one.
func beatEvery(log *slog.Logger) time.Duration {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("reading systemd's watchdog interval", "err", err)
	}
	if watchdog > 0 {
		return min(watchdog/2, pulseEvery)
	}
	return pulseEvery
}

// beat is called by the router's own goroutine.
func (d *podd) beat() {
	d.pulse.beat()
	notify(d.log, daemon.SdNotifyWatchdog)
	d.tellStatus()
}

// tellStatus keeps the status line of "systemctl status" true.
func (d *podd) tellStatus() {
	if status := statusLine(d.view.latest.View()); status != d.told {
		d.told = status
		notify(d.log, "STATUS="+status)
	}
}

// statusLine is "3 pods, 2 ready, 1 problem".
func statusLine(v *server.View) string {
	ready, problems := 0, len(v.Problems)
	for _, p := range v.Pods {
		if p.Ready {
			ready++
		}
		if p.Problem {
			problems++
		}
	}
	return fmt.Sprintf("%d pods, %d ready, %d problems", len(v.Pods), ready, problems)
}
