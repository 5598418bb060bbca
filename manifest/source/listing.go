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

// maxNames bounds the entries of a directory that podd reads.
const maxNames = 10_000

// listing is all that one look at a place found.
type listing struct {
	files   []found // to be read, sorted by name
	skipped []skip  // not to be read
}

// found is an entry that has a manifest's name.
type found struct {
	name  string
	link  bool
	stamp stamp // of what it leads to
	err   error // why it cannot be read
	// astray: it is a link that goes through a directory which others than root
	// can write.
	astray bool
}

// skip is an entry that is not read; why is what to say about it once.
type skip struct {
	name string
	why  string
	// telling: it may be meant as a manifest, so it is shown and not only
	// logged.
	telling bool
}

// list reads the names in the place.
func (p *place) list(now time.Time) (*listing, error) {
	if p.only != "" {
		return p.listOnly()
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
		p.sort(l, e, now)
	}
	return l, nil
}

// listOnly is a listing of the single file, whatever its name.
func (p *place) listOnly() (*listing, error) {
	info, err := p.root.Lstat(p.only)
	if errors.Is(err, fs.ErrNotExist) {
		return &listing{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &listing{files: []found{p.find(p.only, info.Mode())}}, nil
}

// sort puts one entry where it belongs.
func (p *place) sort(l *listing, e fs.DirEntry, now time.Time) {
	name := e.Name()
	skipped := func(telling bool, format string, args ...any) {
		l.skipped = append(l.skipped, skip{name, fmt.Sprintf(format, args...), telling})
	}
	kind := kindOf(name)
	switch {
	case kind == namePlumbing:
	case kind == nameHidden:
		skipped(false, "its name begins with a dot")
	case kind == nameBackup:
		skipped(false, "its name is that of a backup")
	case e.IsDir():
		skipped(true, "podd does not look into subdirectories")
	case kind == nameOther:
		skipped(p.lasting(e, now), "its name does not end in %s", strings.Join(manifestSuffixes, ", "))
	default:
		if f := p.find(name, e.Type()); !errors.Is(f.err, fs.ErrNotExist) || f.link {
			l.files = append(l.files, f) // else it went while we looked
		}
	}
}

// passing is how long a file with a strange name may be the step of some
// program between two others.
const passing = 5 * time.Second

// lasting says that an entry has been as it is for longer than that.
func (p *place) lasting(e fs.DirEntry, now time.Time) bool {
	info, err := e.Info()
	return err == nil && now.Sub(stampOf(info).changed(now)) > passing
}

// find looks at one entry with a manifest's name.
func (p *place) find(name string, mode fs.FileMode) found {
	f := found{name: name, link: mode&fs.ModeSymlink != 0}
	info, err := p.stat(name, f.link)
	switch {
	case err != nil:
		f.err = err
	case !info.Mode().IsRegular():
		f.err = notRegular(info.Mode())
	default:
		f.stamp = stampOf(info)
		if f.link {
			f.astray, f.err = p.follow(name)
		}
	}
	return f
}

// targets are the directories of the files that links lead to, as far as they
// are not the place itself; edits of those files show only there.
func (p *place) targets(l *listing) []string {
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

// maxTargets bounds the watches that links cost.
const maxTargets = 64

// warning is the Problem of a skipped entry.
func (s skip) warning(dir string) manifest.Problem {
	return manifest.Problem{
		Severity: manifest.Warning, Path: filepath.Join(dir, s.name),
		Message: "not read: " + s.why,
	}
}
