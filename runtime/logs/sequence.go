package logs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"podd/manifest/order"
	"podd/runtime/safepath"
)

// maxRaces limits how often a listing is repeated because files were renamed during it.
const maxRaces = 100

// errRace: the directory changed during the listing.
var errRace = errors.New("the log files were renamed too often while they were listed")

// begin opens the first file to read, and with Tail those that follow.
func (r *reader) begin() error {
	if err := r.open(); err != nil {
		return err
	}
	return races(func() error {
		r.attempt = 0
		files, err := r.list(true)
		if err != nil {
			return err
		}
		if r.attempt, err = r.choose(files); err != nil {
			return err
		}
		if files, err = r.list(r.o.Restarts); err != nil {
			return err
		}
		if len(files) == 0 {
			return r.noLog("")
		}
		r.relist = true
		if r.o.Tail != 0 {
			return r.openTail(files)
		}
		r.cur, err = r.openNth(files, 0)
		return err
	})
}

func (r *reader) open() error {
	if r.dir != nil {
		return nil
	}
	all, err := safepath.Open(filepath.Dir(r.o.Dir))
	if err == nil {
		defer all.Close()
		r.dir, err = all.Sub(filepath.Join(filepath.Base(r.o.Dir), r.o.Container))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return r.noLog("")
	}
	if err != nil {
		return fmt.Errorf("reading the log of container %s: %w", r.o.Container, err)
	}
	return nil
}

func (r *reader) noLog(which string) error {
	return fmt.Errorf("container %s has no %slog in %s: %w", r.o.Container, which, r.o.Dir, fs.ErrNotExist)
}

// choose returns the attempt that the options select.
func (r *reader) choose(files []File) (uint32, error) {
	if r.o.Attempt != nil && !r.o.Previous {
		return *r.o.Attempt, nil
	}
	if len(files) == 0 {
		return 0, r.noLog("")
	}
	newest := files[len(files)-1].Attempt
	if !r.o.Previous {
		return newest, nil
	}
	if r.o.Attempt != nil {
		newest = *r.o.Attempt
	}
	for _, f := range slices.Backward(files) {
		if f.Attempt < newest {
			return f.Attempt, nil
		}
	}
	return 0, r.noLog("previous ")
}

// list returns the files of the attempt, and of later ones if later is true, in order.
func (r *reader) list(later bool) ([]File, error) {
	names, err := r.dir.Names()
	if err != nil {
		return nil, fmt.Errorf("reading the log of container %s: %w", r.o.Container, err)
	}
	var files []File
	for _, name := range names {
		f, ok := ParseName(name)
		if ok && (f.Attempt == r.attempt || later && f.Attempt > r.attempt) {
			files = append(files, f)
		}
	}
	order.Slice(files, func(a, b File) int { // the plain file before the compressed one
		return cmp.Or(a.Compare(b), cmp.Compare(len(a.Name()), len(b.Name())))
	})
	return slices.CompactFunc(files, func(a, b File) bool { return a.Compare(b) == 0 }), nil
}

// openFile opens a file. It returns errRace if the name no longer exists.
func (r *reader) openFile(name File) (*scanner, error) {
	f, err := r.dir.OpenFile(name.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errRace
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log of container %s: %w", r.o.Container, err)
	}
	return newScanner(f, name), nil
}

// openNth opens the i-th of the files for reading. Only the name of the file that is
// written to can become that of another file: if it were rotated between the listing and
// the opening, a file would be omitted.
func (r *reader) openNth(files []File, i int) (*scanner, error) {
	s, err := r.openFile(files[i])
	if err != nil || files[i].Rotated != "" {
		return s, err
	}
	now, err := r.list(true)
	if err == nil && newestRotated(now, s.file.Attempt) != newestRotated(files, s.file.Attempt) {
		err = errRace
	}
	if err != nil {
		s.f.Close()
		return nil, err
	}
	s.after = newestRotated(now, s.file.Attempt)
	return s, nil
}

func newestRotated(files []File, attempt uint32) (rotated string) {
	for _, f := range files {
		if f.Attempt == attempt {
			rotated = max(rotated, f.Rotated)
		}
	}
	return rotated
}

func races(try func() error) error {
	for range maxRaces {
		if err := try(); !errors.Is(err, errRace) {
			return err
		}
	}
	return errRace
}
