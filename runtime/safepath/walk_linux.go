package safepath

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth limits the depth of a walk and thereby its memory.
	maxDepth = 4096
	// maxPending limits the number of directories, in all levels together, that were listed and are
	// not visited yet.
	maxPending = 1 << 16
	// maxNamesPerRead is the number of names that are read from a directory at a time.
	maxNamesPerRead = 1024
)

// A visitor receives the files and directories of a walk. fd is always the directory that
// contains name. An error stops the walk.
type visitor interface {
	// entry visits a name. depth is 0 in the top directory. If entry returns true for dir, the walk
	// enters name as a directory.
	entry(fd int, name string, depth int) (dir bool, err error)
	// afterDir is called after everything below a directory was visited.
	afterDir(fd int, name string) error
	// skipped is called for a directory that the walk did not enter. err is the reason: an errno if
	// the directory was removed or changed its type, ErrMount if it is a mount point, or errTooDeep
	// or errTooMany if the tree exceeds a limit of the walk.
	skipped(fd int, name string, err error) error
}

// Reasons why a walk does not visit everything.
var (
	errTooDeep = errors.New("directories are nested too deeply")
	errTooMany = errors.New("there are too many directories at one level")
	// errMoved means that a directory was moved during its visit.
	errMoved = errors.New("was moved during the operation; try again")
)

// A walker visits everything below a directory within one mount, with few descriptors and at any
// depth. To return to a parent directory, a walk uses the open descriptor of the parent. If that
// descriptor was closed, the walk opens ".." and checks that ".." is the same directory as this
// parent.
type walker struct {
	visitor
	topPath      string
	levels       []level
	openLevels   int // number of levels with a directory that stays open
	pendingCount int // number of pending names in all levels together
}

// A level is a directory on the path from the top to the current directory.
type level struct {
	name         string
	dir          *os.File // nil if the directory was closed
	dev, ino     uint64
	pendingNames []string // directories to enter
}

// walkBelow calls v for everything below d. openLevels is the number of levels, counted from the
// top, whose directories stay open. The files in an open directory are visited even if another
// process has moved the directory out of d. So openLevels must be 0 if v changes files, because
// otherwise v could change files outside of d.
func walkBelow(ctx context.Context, d *Dir, v visitor, openLevels int) error {
	w := walker{visitor: v, topPath: d.Path(), openLevels: openLevels}
	defer w.close()
	if err := w.enter(d.Fd(), "."); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := &w.levels[len(w.levels)-1]
		if n := len(l.pendingNames); n > 0 {
			name := l.pendingNames[n-1]
			l.pendingNames = l.pendingNames[:n-1]
			w.pendingCount--
			if err := w.down(name); err != nil {
				return err
			}
			continue
		}
		if len(w.levels) == 1 {
			return nil
		}
		if err := w.up(); err != nil {
			return err
		}
	}
}

// down enters a directory in the current directory, unless the new level is too deep.
func (w *walker) down(name string) error {
	if len(w.levels) >= maxDepth {
		return w.skipped(w.fd(), name, errTooDeep)
	}
	return w.enter(w.fd(), name)
}

// enter opens a directory, appends it to the levels of the walk and lists it.
func (w *walker) enter(at int, name string) error {
	fd, err := openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0, unix.RESOLVE_NO_XDEV)
	if err != nil {
		return w.skipped(at, name, w.pathError("enter", name, err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return w.pathError("enter", name, err)
	}
	if n := len(w.levels); n > w.openLevels {
		w.levels[n-1].close()
	}
	w.levels = append(w.levels, level{name: name, dir: os.NewFile(uintptr(fd), name), dev: st.Dev, ino: st.Ino})
	return w.list()
}

func (w *walker) close() {
	for i := range w.levels {
		w.levels[i].close()
	}
}

func (l *level) close() {
	if l.dir != nil {
		l.dir.Close()
		l.dir = nil
	}
}

// list visits the names in the current directory. It stores the names of the directories that must
// be entered.
func (w *walker) list() error {
	l := &w.levels[len(w.levels)-1]
	for {
		names, err := l.dir.Readdirnames(maxNamesPerRead)
		for _, name := range names {
			dir, err := w.entry(w.fd(), name, len(w.levels)-1)
			if err == nil && dir && w.pendingCount >= maxPending {
				err = w.skipped(w.fd(), name, errTooMany)
			} else if err == nil && dir {
				l.pendingNames = append(l.pendingNames, name)
				w.pendingCount++
			}
			if err != nil {
				return w.pathError("visit", name, err)
			}
		}
		if err == io.EOF || errors.Is(err, unix.ENOENT) { // ENOENT means that the directory was removed after it was opened
			return nil
		}
		if err != nil {
			return w.pathError("list", "", err)
		}
	}
}

// up returns to the parent directory. It returns errMoved if the current directory was
// moved.
func (w *walker) up() error {
	child := w.levels[len(w.levels)-1]
	defer child.close()
	w.levels = w.levels[:len(w.levels)-1]
	parent := &w.levels[len(w.levels)-1]
	var err error
	if parent.dir == nil {
		err = parent.open(int(child.dir.Fd()))
	}
	if err == nil {
		err = w.afterDir(w.fd(), child.name)
	}
	if err != nil {
		return w.pathError("leave", child.name, err)
	}
	return nil
}

// open opens the directory of l again. child is a descriptor of the next directory on the path,
// which is in the directory of l.
func (l *level) open(child int) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(child, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Dev != l.dev || st.Ino != l.ino) {
		err = errMoved
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	l.dir = os.NewFile(uintptr(fd), l.name)
	return nil
}

// fd returns the descriptor of the current directory.
func (w *walker) fd() int { return int(w.levels[len(w.levels)-1].dir.Fd()) }

// pathError adds the path to err, unless err contains a path. A very long path is shortened
// in the middle.
func (w *walker) pathError(op, name string, err error) error {
	var withPath *os.PathError
	if errors.As(err, &withPath) {
		return err
	}
	var b strings.Builder
	b.WriteString(w.topPath)
	for i, l := range w.levels {
		switch {
		case i == 0:
		case i < 16:
			b.WriteString("/" + l.name)
		case i == 16:
			b.WriteString("/…")
		}
	}
	return pathError(op, filepath.Join(b.String(), name), err)
}
