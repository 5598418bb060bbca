package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/manifest"
)

// maxNames limits the number of entries that podd reads from a directory.
const maxNames = 10_000

// listing is the result of listing a place.
type listing struct {
	files   []found // to be read, sorted by name
	skipped []skip  // not to be read
}

// found is an entry that is named like a manifest.
type found struct {
	name  string
	link  bool
	stamp stamp // of the file that the entry leads to
	err   error // why the file cannot be read
	// astray reports whether it is a link through a directory that a user other than root
	// can write.
	astray bool
}

// skip is an entry that is not read. reason is logged once.
type skip struct {
	name   string
	reason string
	// isProblem reports whether the entry may be meant as a manifest, so that it becomes a
	// Problem and not only a log message.
	isProblem bool
}

// list reads the names in the place.
func (p *place) list(now time.Time) (*listing, error) {
	if p.only != "" {
		return p.listSingle()
	}
	dir, err := p.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxNames + 1)
	if len(entries) > maxNames {
		return nil, errUnlisted
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	l := &listing{}
	for _, e := range entries {
		p.addEntry(l, e, now)
	}
	return l, nil
}

// listSingle returns the listing of a single file, which may have any name.
func (p *place) listSingle() (*listing, error) {
	info, err := p.root.Lstat(p.only)
	if errors.Is(err, fs.ErrNotExist) {
		return &listing{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &listing{files: []found{p.find(p.only, info.Mode())}}, nil
}

// addEntry adds one entry to the files or the skipped entries of the listing.
func (p *place) addEntry(l *listing, e fs.DirEntry, now time.Time) {
	name := e.Name()
	skipped := func(isProblem bool, format string, args ...any) {
		l.skipped = append(l.skipped, skip{name, fmt.Sprintf(format, args...), isProblem})
	}
	kind := kindOf(name)
	switch {
	case kind == namePlumbing:
	case kind == nameHidden:
		skipped(false, "its name begins with a dot")
	case kind == nameBackup:
		skipped(false, "its name is that of a backup file")
	case e.IsDir():
		skipped(true, "podd does not read subdirectories")
	case kind == nameOther:
		skipped(p.isStable(e, now), "its name does not end in %s", strings.Join(manifestSuffixes, ", "))
	default:
		if f := p.find(name, e.Type()); !errors.Is(f.err, fs.ErrNotExist) || f.link {
			l.files = append(l.files, f) // otherwise it was removed after it was listed
		}
	}
}

// stableAfter is how long a file with an unknown name may be a program's temporary file.
const stableAfter = 5 * time.Second

// isStable reports whether an entry has been unchanged for longer than stableAfter.
func (p *place) isStable(e fs.DirEntry, now time.Time) bool {
	info, err := e.Info()
	return err == nil && now.Sub(stampOf(info).changed(now)) > stableAfter
}

// find returns the state of one entry that is named like a manifest.
func (p *place) find(name string, mode fs.FileMode) found {
	f := found{name: name, link: mode&fs.ModeSymlink != 0}
	info, err := p.stat(name, f.link)
	switch {
	case err != nil:
		f.err = err
	case !info.Mode().IsRegular():
		f.err = irregularError(info.Mode())
	default:
		f.stamp = stampOf(info)
		if f.link {
			f.astray, f.err = p.follow(name)
		}
	}
	return f
}

// linkDirs returns the directories outside the place that contain files which links lead to,
// because edits of those files cause events only there.
func (p *place) linkDirs(l *listing) []string {
	var dirs []string
	for _, f := range l.files {
		if !f.link || !p.trusted || len(dirs) >= maxTargets {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(p.path, f.name))
		if dir := filepath.Dir(target); err == nil && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// maxTargets limits the number of watches for the targets of links.
const maxTargets = 64

// warning returns the Problem of a skipped entry.
func (s skip) warning(dir string) manifest.Problem {
	return manifest.Problem{
		Severity: manifest.Warning, Path: filepath.Join(dir, s.name),
		Message: "ignored: " + s.reason,
	}
}
