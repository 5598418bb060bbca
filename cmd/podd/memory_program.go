package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a line of /proc/self/maps.
type mapping struct {
	from, to uintptr
	writable bool
	file     string // device and inode; "00:00 0" for none
}

// releaseProgram gives the pages of podd's program file back: its code and
// constants, never its variables. Most were needed once, to start, to parse, to
// run a burst of pods; what is needed again is still in the page cache and
// mapped anew when it is touched, a fraction of a millisecond for all of it.
// The kernel, which maps 16 pages for each one touched, leaves nothing out on
// its own unless memory is short.
func releaseProgram() error {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("releasing the program's pages: %w", err)
	}
	defer f.Close()
	all, err := readMappings(f)
	if err != nil {
		return fmt.Errorf("releasing the program's pages: %w", err)
	}
	for _, m := range programOf(all, reflect.ValueOf(releaseProgram).Pointer()) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("releasing the program's pages: %w", errno)
		}
	}
	return nil
}

// programOf are the mappings, not writable, of the file that has code at an
// address. What cannot be written to cannot differ from its file.
func programOf(all []mapping, code uintptr) []mapping {
	var program []mapping
	for _, here := range all {
		if code < here.from || code >= here.to || strings.HasSuffix(here.file, " 0") {
			continue
		}
		for _, m := range all {
			if m.file == here.file && !m.writable {
				program = append(program, m)
			}
		}
	}
	return program
}

// readMappings reads "from-to rwxp offset device inode path", the form of
// /proc/self/maps.
func readMappings(r io.Reader) ([]mapping, error) {
	var all []mapping
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 5 {
			return nil, fmt.Errorf("a mapping reads %q", lines.Text())
		}
		from, to, _ := strings.Cut(words[0], "-")
		begin, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return nil, err
		}
		end, err := strconv.ParseUint(to, 16, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, mapping{
			from: uintptr(begin), to: uintptr(end),
			writable: strings.Contains(words[1], "w"), file: words[3] + " " + words[4],
		})
	}
	return all, lines.Err()
}
