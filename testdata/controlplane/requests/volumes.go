package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// volumeKinds contains the kinds of volumes whose files the kubelet writes.
var volumeKinds = []string{"configmap", "secret", "projected", "downward-api", "empty-dir"}

// versionDirPattern matches the name of the directory with the files of a volume.
var versionDirPattern = regexp.MustCompile(`\.\.\d{4}_[0-9_.]+`)

// readFiles records the files in the volumes that the kubelet has created.
func (r *registeredKubelet) readFiles() error {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	for _, q := range r.m.requests {
		for _, kind := range volumeKinds {
			dirs, err := filepath.Glob(filepath.Join(r.rootInNamespace(), "pods", q.Sandbox.Metadata.Uid, "volumes/kubernetes.io~"+kind, "*"))
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				if q.Files == nil {
					q.Files = map[string][]string{}
				}
				if q.Files[filepath.Base(dir)], err = listFiles(dir); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// listFiles returns a line for each file, directory and symlink below dir: mode, owner, path and
// content.
func listFiles(dir string) (lines []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			return err
		}
		content := ""
		switch {
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf(" %q", text)
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			content = " -> " + target
		}
		line := fmt.Sprintf("%06o %d:%d .%s%s", st.Mode, st.Uid, st.Gid, strings.TrimPrefix(path, dir), content)
		lines = append(lines, versionDirPattern.ReplaceAllString(line, "..TIME"))
		return nil
	})
	return lines, err
}
