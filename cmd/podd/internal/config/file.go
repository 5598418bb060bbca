package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"podd/manifest"
)

// maxFileBytes is the maximum size of a configuration file. The size of the file that kubeadm
// writes is about 1 KiB.
const maxFileBytes = 1 << 20

// maxDropIns is the maximum number of files in the directory of --config-dir.
const maxDropIns = 1000

// readFile reads a regular file of at most maxFileBytes. It follows symlinks, because the user
// has chosen the path. A FIFO or device is an error and does not block.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	if info.IsDir() { // the manifest directory of kubelets up to Kubernetes 1.5
		return nil, fmt.Errorf("reading configuration %q: is a directory; for a directory of manifests, use --pod-manifest-path", path)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading configuration %q: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("reading configuration %q: larger than %d bytes", path, maxFileBytes)
	}
	return data, nil
}

// findDropIns returns the paths of the *.conf files in dir and its subdirectories in lexical
// order. It returns an error if dir does not exist.
func findDropIns(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && filepath.Ext(d.Name()) == ".conf" {
			files = append(files, path)
		}
		if len(files) > maxDropIns {
			return fmt.Errorf("the directory contains more than %d files", maxDropIns)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading drop-ins of --config-dir %q: %w", dir, err)
	}
	return files, nil
}

// readLayers reads the files of --config and --config-dir. If some files cannot be read, readLayers
// returns an error that names these files. It then still returns the layers and problems of all
// other files, so that Load can report everything at once.
func readLayers(f *Flags) ([]*layer, []manifest.Problem, error) {
	var files []string
	var errs []error
	if f.Config != "" {
		files = append(files, f.Config)
	}
	if f.ConfigDir != "" {
		dropIns, err := findDropIns(f.ConfigDir)
		errs = append(errs, err)
		files = append(files, dropIns...)
	}
	var layers []*layer
	var problems []manifest.Problem
	for _, path := range files {
		data, err := readFile(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l, found := parseLayer(path, data)
		problems = append(problems, found...)
		if l != nil && path == f.Config {
			l.addDefaultEvictionHard()
		}
		if l != nil {
			layers = append(layers, l)
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	return layers, problems, errors.Join(errs...)
}
