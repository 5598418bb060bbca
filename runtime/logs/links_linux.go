package logs

import (
	"io/fs"
	"syscall"
)

// linkCount returns the number of names (hard links) of a file.
func linkCount(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 0
}
