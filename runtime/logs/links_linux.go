package logs

import (
	"io/fs"
	"syscall"
)

// links returns the number of names (hard links) of a file.
func links(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 0
}
