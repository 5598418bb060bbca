package beneath

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
	// maxDepth bounds what a walk remembers of its way down.
	maxDepth = 4096
	// maxPending bounds the names a walk keeps for later, in the whole tree.
	maxPending = 1 << 16
	// readNames is how many names are asked of a directory at a time.
	readNames = 1024
)

// visitor is what a walk does. fd is always the directory that holds name.
type visitor interface {
	// entry looks at a name at a depth, 0 at the top; dir says to go into it.
	entry(fd int, name string, depth int) (dir bool, err error)
	// left follows once everything below a directory was visited.
	left(fd int, name string) error
	// skipped is told of a directory that was not entered: gone or no longer a
	// directory (errno), a mount point (ErrMount), errDeep or errMany.
	skipped(fd int, name string, err error) error
}

// What keeps a pass from visiting everything.
var (
	errDeep = errors.New("too deep for one pass")
	errMany = errors.New("too many directories for one pass")
	// errMoved: somebody moved a directory while it was visited.
	errMoved = errors.New("was moved elsewhere meanwhile; try again")
)

// walk visits everything below a directory with one descriptor, at any depth,
// within one mount. It goes up by "..", and makes sure that this is where it
// came from.
type walk struct {
	visitor
	top     string
	cur     *os.File
	levels  []level
	pending int // names in all levels
}

// level is a directory on the way from the top to the current one.
type level struct {
	name     string
	dev, ino uint64
	pending  []string
}

func walkBelow(ctx context.Context, d *Dir, v visitor) error {
	w := walk{visitor: v, top: d.Path()}
	defer func() {
		if w.cur != nil {
			w.cur.Close()
		}
	}()
	if err := w.enter(d.Fd(), "."); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := &w.levels[len(w.levels)-1]
		if n := len(l.pending); n > 0 {
			name := l.pending[n-1]
			l.pending = l.pending[:n-1]
			w.pending--
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

func (w *walk) down(name string) error {
	if len(w.levels) >= maxDepth {
		return w.skipped(w.fd(), name, errDeep)
	}
	return w.enter(w.fd(), name)
}

// enter opens a directory, makes it the current one and lists it.
func (w *walk) enter(at int, name string) error {
	fd, err := openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0, unix.RESOLVE_NO_XDEV)
	if err != nil {
		return w.skipped(at, name, w.pathError("enter", name, err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return w.pathError("enter", name, err)
	}
	if w.cur != nil {
		w.cur.Close()
	}
	w.cur = os.NewFile(uintptr(fd), name)
	w.levels = append(w.levels, level{name: name, dev: st.Dev, ino: st.Ino})
	return w.list()
}

func (w *walk) list() error {
	l := &w.levels[len(w.levels)-1]
	for {
		names, err := w.cur.Readdirnames(readNames)
		for _, name := range names {
			dir, err := w.entry(w.fd(), name, len(w.levels)-1)
			if err == nil && dir && w.pending >= maxPending {
				err = w.skipped(w.fd(), name, errMany)
			} else if err == nil && dir {
				l.pending = append(l.pending, name)
				w.pending++
			}
			if err != nil {
				return w.pathError("visit", name, err)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return w.pathError("list", "", err)
		}
	}
}

// up returns to the parent, or fails when the directory was moved meanwhile.
func (w *walk) up() error {
	gone := w.levels[len(w.levels)-1]
	w.levels = w.levels[:len(w.levels)-1]
	parent := w.levels[len(w.levels)-1]
	fd, err := retry(func() (int, error) {
		return unix.Openat(w.fd(), "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return w.pathError("leave", gone.name, err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Dev != parent.dev || st.Ino != parent.ino) {
		err = errMoved
	}
	if err != nil {
		unix.Close(fd)
		return w.pathError("leave", gone.name, err)
	}
	w.cur.Close()
	w.cur = os.NewFile(uintptr(fd), parent.name)
	if err := w.left(fd, gone.name); err != nil {
		return w.pathError("leave", gone.name, err)
	}
	return nil
}

func (w *walk) fd() int { return int(w.cur.Fd()) }

// pathError names the place, shortened in the middle where it is absurdly deep.
func (w *walk) pathError(op, name string, err error) error {
	var known *os.PathError
	if errors.As(err, &known) {
		return err
	}
	var b strings.Builder
	b.WriteString(w.top)
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
