package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// A Document is the content of a configuration file, or of a ConfigMap.
type Document struct {
	Path string `json:"path"` // shown in problems; the path of a file
	// Dir is the directory to which relative paths in the document refer.
	Dir  string `json:"dir"`
	Data []byte `json:"data"`
	// IsMain is set for the document of --config, and not set for a drop-in.
	IsMain bool `json:"isMain,omitempty"`
}

// readDocument reads a configuration file.
func readDocument(path string, isMain bool) (Document, error) {
	data, err := readFile(path)
	if err != nil {
		return Document{}, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Document{}, fmt.Errorf("reading configuration %q: %w", path, err)
	}
	return Document{Path: path, Dir: dir, Data: data, IsMain: isMain}, nil
}

// ReadDocuments reads the files of --config and --config-dir in the order in which they apply. If some
// files cannot be read, ReadDocuments returns all others and an error that names these files.
func ReadDocuments(f *Flags) ([]Document, error) {
	var docs []Document
	var errs []error
	read := func(path string, isMain bool) {
		d, err := readDocument(path, isMain)
		if err != nil {
			errs = append(errs, err)
			return
		}
		docs = append(docs, d)
	}
	if f.Config != "" {
		read(f.Config, true)
	}
	if f.ConfigDir != "" {
		dropIns, err := findDropIns(f.ConfigDir)
		if err != nil {
			errs = append(errs, err)
		}
		for _, path := range dropIns {
			read(path, false)
		}
	}
	return docs, errors.Join(errs...)
}

// parseDocuments returns a layer for each valid document, and the problems of all documents.
func parseDocuments(docs []Document) (layers []*layer, problems []manifest.Problem) {
	for _, d := range docs {
		l, found := parseLayer(d)
		problems = append(problems, found...)
		if l == nil {
			continue
		}
		if d.IsMain {
			l.addDefaultEvictionHard()
			l.deriveReportFrequency()
		}
		layers = append(layers, l)
	}
	return layers, problems
}
