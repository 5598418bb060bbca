// Package bootid reads the ID of the host's present boot. The kernel chooses a random ID at each boot,
// so an ID that was recorded earlier shows whether the host has been rebooted since then.
//
// The package imports only the standard library, so that all packages can import it.
package bootid

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

const path = "/proc/sys/kernel/random/boot_id"

// Get returns the ID of the present boot. The ID is read once, because it cannot change while a
// process runs.
func Get() (string, error) { return once() }

var once = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the boot ID of the host: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
})
