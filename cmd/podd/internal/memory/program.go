package memory

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

// A mapping is a line of /proc/self/maps.
type mapping struct {
	from, to uintptr
	writable bool
	file     string // device and inode; "00:00 0" without a file
}

// releaseProgram unmaps the pages of podd's program file, which contain code and constants
// but no variables. Most are needed only once, for example to start or to parse. Pages that
// are accessed again are still in the page cache, and mapping all of them takes a fraction of
// a millisecond. The kernel maps 16 pages for each access and unmaps none unless memory is
// short.
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
	for _, m := range programMappings(all, reflect.ValueOf(releaseProgram).Pointer()) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("releasing the program's pages: %w", errno)
		}
	}
	return nil
}

// programMappings returns the read-only mappings of the file that contains the address
// code. Writable pages are omitted, because they may differ from the file.
func programMappings(all []mapping, code uintptr) []mapping {
	var program []mapping
	for _, own := range all {
		if code < own.from || code >= own.to || strings.HasSuffix(own.file, " 0") {
			continue
		}
		for _, m := range all {
			if m.file == own.file && !m.writable {
				program = append(program, m)
			}
		}
	}
	return program
}

// readMappings parses lines of the form "from-to rwxp offset device inode path"
// (/proc/self/maps).
func readMappings(r io.Reader) ([]mapping, error) {
	var all []mapping
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 5 {
			return nil, fmt.Errorf("invalid mapping %q", lines.Text())
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
