package server

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// PrepareRunDir creates dir if it does not exist. dir must belong to a trusted user. If other users
// can enter dir, PrepareRunDir changes the mode of dir. It returns an error instead if dir also
// contains files of other programs, because dir may be a shared directory such as /run.
func PrepareRunDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the run directory: %w", err)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("opening the run directory, which must not be a symbolic link: %w", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("checking the run directory %s: %w", dir, err)
	}
	if !IsTrusted(st.Uid) {
		return fmt.Errorf("using the run directory %s: it belongs to uid %d, who could replace the socket; use another --run-dir", dir, st.Uid)
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
			return fmt.Errorf("using the run directory %s: other users can enter it (mode %04o) and it contains files that are not podd's (%s); use another --run-dir, or change the mode to 0700", dir, st.Mode&0o777, name)
		}
	}
	if err := f.Chmod(0o700); err != nil {
		return fmt.Errorf("restricting the mode of the run directory: %w", err)
	}
	return nil
}
