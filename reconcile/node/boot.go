package node

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"podd/reconcile/event"
	"podd/runtime/atomicfile"
	"podd/runtime/bootid"
)

// RebootEvents returns an event if the node has been rebooted since podd last used the root
// directory.
func RebootEvents(root, node string, at time.Time, log *slog.Logger) []event.Event {
	id, _ := bootid.Get()
	wasRebooted, err := recordBoot(filepath.Join(root, "boot_id"), id)
	if err != nil {
		log.Warn("storing the boot ID failed; the next reboot may not be recorded as an event", "err", err)
	}
	if !wasRebooted {
		return nil
	}
	return []event.Event{event.ForReboot(node, id, at)}
}

// recordBoot stores bootID, the ID of the current boot, in a file. wasRebooted is true if the file
// contained another boot ID.
func recordBoot(path, bootID string) (wasRebooted bool, err error) {
	if bootID == "" {
		return false, nil
	}
	storedID, err := os.ReadFile(path)
	if err == nil && string(storedID) == bootID {
		return false, nil
	}
	if werr := atomicfile.Write(path, []byte(bootID)); werr != nil {
		return false, fmt.Errorf("storing the boot ID: %w", werr)
	}
	return err == nil && len(storedID) > 0, nil
}
