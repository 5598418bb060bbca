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

// maxListingRetries limits how often a listing is repeated because files were renamed during the
// listing.
const maxListingRetries = 100

// errRace means that files were renamed during a listing.
var errRace = errors.New("the runtime renamed log files during every attempt to list them")

// openFirst opens the first file to read. If Options.TailLines is set, it also opens the files that
// follow.
func (r *reader) openFirst() error {
	if err := r.openDir(); err != nil {
		return err
	}
	return retryRaces(func() error {
		r.attempt = 0
		files, err := r.listFiles(true)
		if err != nil {
			return err
		}
		if r.attempt, err = r.selectAttempt(files); err != nil {
			return err
		}
		if files, err = r.listFiles(r.o.LaterAttempts); err != nil {
			return err
		}
		if len(files) == 0 {
			return r.noLogError("")
		}
		r.mustRelist = true
		if r.o.TailLines != 0 {
			return r.openTail(files)
		}
		r.cur, err = r.openNth(files, 0)
		return err
	})
}

// openDir opens the container's log directory, unless it is open already. It returns
// fs.ErrNotExist if the directory does not exist.
func (r *reader) openDir() error {
	if r.dir != nil {
		return nil
	}
	podDir, err := safepath.Open(filepath.Dir(r.o.Dir))
	if err == nil {
		defer podDir.Close()
		r.dir, err = podDir.Sub(filepath.Join(filepath.Base(r.o.Dir), r.o.Container))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return r.noLogError("")
	}
	if err != nil {
		return fmt.Errorf("reading the log of container %s: %w", r.o.Container, err)
	}
	return nil
}

// noLogError returns an error that wraps fs.ErrNotExist. kind is "" or "previous ".
func (r *reader) noLogError(kind string) error {
	return fmt.Errorf("reading the log of container %s: no %slog in %s: %w", r.o.Container, kind, r.o.Dir, fs.ErrNotExist)
}

// selectAttempt returns the first attempt that the options select.
func (r *reader) selectAttempt(files []File) (attempt uint32, err error) {
	if r.o.Attempt != nil && !r.o.Previous {
		return *r.o.Attempt, nil
	}
	if len(files) == 0 {
		return 0, r.noLogError("")
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
	return 0, r.noLogError("previous ")
}

// listFiles returns the files of r.attempt in the order in which they were written. If includeLater
// is true, it also returns the files of later attempts.
func (r *reader) listFiles(includeLater bool) ([]File, error) {
	names, err := r.dir.Names()
	if err != nil {
		return nil, fmt.Errorf("reading the log of container %s: %w", r.o.Container, err)
	}
	var files []File
	for _, name := range names {
		f, ok := ParseName(name)
		if ok && (f.Attempt == r.attempt || includeLater && f.Attempt > r.attempt) {
			files = append(files, f)
		}
	}
	order.Slice(files, func(a, b File) int { // a plain file precedes its compressed copy
		return cmp.Or(a.Compare(b), cmp.Compare(len(a.Name()), len(b.Name())))
	})
	return slices.CompactFunc(files, func(a, b File) bool { return a.Compare(b) == 0 }), nil
}

// openFile opens a log file. It returns errRace if the file no longer exists.
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

// openNth opens files[i]. The file to which the runtime writes may have been rotated since the
// listing, so that its name now leads to a newer file. In this case openNth returns errRace,
// because otherwise the rotated file would be omitted.
func (r *reader) openNth(files []File, i int) (*scanner, error) {
	s, err := r.openFile(files[i])
	if err != nil || files[i].RotatedAt != "" {
		return s, err
	}
	now, err := r.listFiles(true)
	if err == nil && newestRotated(now, s.file.Attempt) != newestRotated(files, s.file.Attempt) {
		err = errRace
	}
	if err != nil {
		s.f.Close()
		return nil, err
	}
	s.newestRotatedAtOpen = newestRotated(now, s.file.Attempt)
	return s, nil
}

// newestRotated returns the rotation time of the newest rotated file of an attempt, or "" if
// there is none.
func newestRotated(files []File, attempt uint32) (rotated string) {
	for _, f := range files {
		if f.Attempt == attempt {
			rotated = max(rotated, f.RotatedAt)
		}
	}
	return rotated
}

// retryRaces calls the function attempt until it returns nil or an error other than errRace. After
// maxListingRetries calls retryRaces returns errRace.
func retryRaces(attempt func() error) error {
	for range maxListingRetries {
		if err := attempt(); !errors.Is(err, errRace) {
			return err
		}
	}
	return errRace
}
