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

// maxFile limits the bytes of a configuration file. That of kubeadm has about 1 KiB.
const maxFile = 1 << 20

// maxDropins limits the files of a drop-in directory.
const maxDropins = 1000

// readFile reads a regular file of at most maxFile bytes. It follows symlinks, because the
// user has chosen the path. A FIFO or device is an error and does not block.
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
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading configuration %q: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("reading configuration %q: larger than %d bytes", path, maxFile)
	}
	return data, nil
}

// findDropIns returns the *.conf files below dir in lexical order. If dir does not exist,
// that is an error.
func findDropIns(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && filepath.Ext(d.Name()) == ".conf" {
			files = append(files, path)
		}
		if len(files) > maxDropins {
			return fmt.Errorf("more than %d files", maxDropins)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading drop-ins of --config-dir %q: %w", dir, err)
	}
	return files, nil
}

// readLayers reads the files of --config and --config-dir. Together with an error, it returns
// the layers of the other files, so that all errors are reported together.
func readLayers(f *Flags) ([]*layer, []manifest.Problem, error) {
	var files []string
	var errs []error
	if f.Config != "" {
		files = append(files, f.Config)
	}
	if f.ConfigDir != "" {
		more, err := findDropIns(f.ConfigDir)
		errs = append(errs, err)
		files = append(files, more...)
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
			l.addDefaultEviction()
		}
		if l != nil {
			layers = append(layers, l)
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	return layers, problems, errors.Join(errs...)
}
