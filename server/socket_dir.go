package server

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// prepareRunDir makes dir, or sees to it that an existing one is a directory
// of ours that others cannot enter. Its mode is only changed when nothing but
// podd's own is in it: the user may have named /run.
func prepareRunDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("opening the run directory, which cannot be a link: %w", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("looking at the run directory %s: %w", dir, err)
	}
	if !Trusted(st.Uid) {
		return fmt.Errorf("using the run directory %s: it belongs to user %d, who could put another socket in our place; choose a different --run-dir", dir, st.Uid)
	}
	if st.Mode&0o077 == 0 {
		return nil
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("listing the run directory: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "podd") {
			return fmt.Errorf("using the run directory %s: others can enter it (mode %04o) and it holds more than podd's own (%s); choose a different --run-dir, or chmod it to 0700", dir, st.Mode&0o777, name)
		}
	}
	if err := f.Chmod(0o700); err != nil {
		return fmt.Errorf("closing the run directory to others: %w", err)
	}
	return nil
}
