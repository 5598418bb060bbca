package nodestatus

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"podd/cmd/podd/internal/host"
	"podd/reconcile/event"
	"podd/runtime/atomicfile"
)

// RebootEvents returns an event if the node has been rebooted since podd last used the root
// directory.
func RebootEvents(root, node string, at time.Time, log *slog.Logger) []event.Event {
	id := host.ReadFirstLine("/proc/sys/kernel/random/boot_id")
	rebooted, err := recordBoot(filepath.Join(root, "boot_id"), id)
	if err != nil {
		log.Warn("storing the boot ID failed; the next reboot may not be recorded as an event", "err", err)
	}
	if !rebooted {
		return nil
	}
	return []event.Event{event.ForReboot(node, id, at)}
}

// recordBoot stores the current boot ID in a file. rebooted is true if the file contained another
// boot ID.
func recordBoot(path, now string) (rebooted bool, err error) {
	if now == "" {
		return false, nil
	}
	before, err := os.ReadFile(path)
	if err == nil && string(before) == now {
		return false, nil
	}
	if werr := atomicfile.Write(path, []byte(now)); werr != nil {
		return false, fmt.Errorf("storing the boot ID: %w", werr)
	}
	return err == nil && len(before) > 0, nil
}
