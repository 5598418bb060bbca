package source

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/manifest"
	"podd/manifest/filename"
)

// maxEntries limits the number of entries that podd reads from a directory.
const maxEntries = 10_000

// listing contains the entries of a directory.
type listing struct {
	files   []manifestEntry // to be read, sorted by name
	skipped []skippedEntry  // not to be read
}

// manifestEntry is an entry of a directory that podd reads as a manifest.
type manifestEntry struct {
	name   string
	isLink bool
	stamp  stamp // stamp of the file or, for a link, of its target
	err    error // why the file cannot be read
	// hasUnsafeLink reports whether the entry is a link that leads through a directory to which a
	// user other than root can write.
	hasUnsafeLink bool
}

// skippedEntry is an entry of a directory that podd does not read.
type skippedEntry struct {
	name   string
	reason string
	// isProblem reports whether a user may intend the entry to be a manifest. If so, it becomes
	// a Problem and not only a log message.
	isProblem bool
}

// list returns the entries of the directory. It uses only the field ReadsAnyName of o.
func (d *manifestDir) list(o Options, now time.Time) (*listing, error) {
	if d.onlyFile != "" {
		return d.listSingle()
	}
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxEntries + 1)
	if len(entries) > maxEntries {
		return nil, errTooManyEntries
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	l := &listing{}
	for _, e := range entries {
		d.addEntry(l, e, o, now)
	}
	return l, nil
}

// listSingle returns the listing of a single file, which may have any name.
func (d *manifestDir) listSingle() (*listing, error) {
	info, err := d.root.Lstat(d.onlyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &listing{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &listing{files: []manifestEntry{d.statEntry(d.onlyFile, info.Mode())}}, nil
}

// classify returns the kind of an entry with this name. If ReadsAnyName is set, it returns
// filename.Manifest instead of filename.Other.
func (o Options) classify(name string) filename.Kind {
	kind := filename.Classify(name)
	if kind == filename.Other && o.ReadsAnyName {
		return filename.Manifest
	}
	return kind
}

// addEntry adds one entry to the files or the skipped entries of the listing. A backup file is a
// Problem only if ReadsAnyName is set, because only then may a user expect podd to read it.
func (d *manifestDir) addEntry(l *listing, e fs.DirEntry, o Options, now time.Time) {
	name := e.Name()
	addSkipped := func(isProblem bool, reason string) {
		l.skipped = append(l.skipped, skippedEntry{name, reason, isProblem})
	}
	kind := o.classify(name)
	switch {
	case kind == filename.VolumeLink:
	case kind == filename.Hidden:
		addSkipped(false, kind.IgnoredReason())
	case kind == filename.Backup:
		addSkipped(o.ReadsAnyName && d.isStable(e, now), kind.IgnoredReason())
	case e.IsDir():
		addSkipped(true, "podd does not read subdirectories")
	case kind == filename.Other:
		addSkipped(d.isStable(e, now), kind.IgnoredReason())
	default:
		// Omit an entry that was removed after it was listed, but not a link with a missing target.
		if f := d.statEntry(name, e.Type()); !errors.Is(f.err, fs.ErrNotExist) || f.isLink {
			l.files = append(l.files, f)
		}
	}
}

// stableAfter is how long a file that does not have the name of a manifest must be unchanged before
// it becomes a Problem. A file that changes may be the temporary file of a program.
const stableAfter = 5 * time.Second

// isStable reports whether an entry has been unchanged for longer than stableAfter.
func (d *manifestDir) isStable(e fs.DirEntry, now time.Time) bool {
	info, err := e.Info()
	return err == nil && now.Sub(stampOf(info).changeTime(now)) > stableAfter
}

// statEntry returns the manifestEntry with this name. mode contains the type bits of the entry.
func (d *manifestDir) statEntry(name string, mode fs.FileMode) manifestEntry {
	f := manifestEntry{name: name, isLink: mode&fs.ModeSymlink != 0}
	info, err := d.stat(name, f.isLink)
	switch {
	case err != nil:
		f.err = err
	case !info.Mode().IsRegular():
		f.err = newNotRegularError(info.Mode())
	default:
		f.stamp = stampOf(info)
		if f.isLink {
			f.hasUnsafeLink, f.err = d.checkLink(name)
		}
	}
	return f
}

// linkTargetDirs returns the directories that contain the targets of links in l. podd must watch
// these directories, because an edit of a target causes no event in the directory of the link.
func (d *manifestDir) linkTargetDirs(l *listing) []string {
	var dirs []string
	for _, f := range l.files {
		if !f.isLink || !d.isTrusted || len(dirs) >= maxLinkTargetDirs {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(d.path, f.name))
		if dir := filepath.Dir(target); err == nil && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// maxLinkTargetDirs is the maximum number of directories that are watched for targets of links.
const maxLinkTargetDirs = 64

// newProblem returns the Problem of a skipped entry. dir is the path of its directory.
func (s skippedEntry) newProblem(dir string) manifest.Problem {
	return manifest.Problem{
		Severity: manifest.Warning, Path: filepath.Join(dir, s.name),
		Message: "ignored: " + s.reason,
	}
}
