package logs

import (
	"io/fs"
	"syscall"
)

// links is how many names a file has.
func links(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 0
}
