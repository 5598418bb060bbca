package tools

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A file is one entry of a layer. It is a directory if its name ends in a slash, a symbolic link if
// link is set, and otherwise a regular file. The owner is always root.
type file struct {
	name string
	mode int64
	data []byte
	link string
}

// newImage returns an image with one layer. If several files have the same name, the layer contains
// the last one. The same files and config always result in the same digest, because the image does
// not contain the times and owners of files on the host.
func newImage(files []file, config v1.Config) (v1.Image, error) {
	content, err := archive(files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("creating an image layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding a layer to an image: %w", err)
	}
	described, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image config: %w", err)
	}
	described = described.DeepCopy()
	described.OS, described.Architecture = "linux", runtime.GOARCH
	described.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	described.Config = config
	image, err = mutate.ConfigFile(image, described)
	if err != nil {
		return nil, fmt.Errorf("setting the image config: %w", err)
	}
	return image, nil
}

func archive(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	last := map[string]int{}
	for i, f := range files {
		last[f.name] = i
	}
	for i, f := range files {
		if last[f.name] != i { // skip all but the last of several files with the same name, because CRI-O rejects a layer with duplicate files
			continue
		}
		if err := w.WriteHeader(f.header()); err != nil {
			return nil, fmt.Errorf("adding %s to the archive of an image layer: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("adding %s to the archive of an image layer: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("closing the archive of an image layer: %w", err)
	}
	return out.Bytes(), nil
}

func (f file) header() *tar.Header {
	h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Linkname: f.link,
		Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
	switch {
	case f.link != "":
		h.Typeflag = tar.TypeSymlink
	case strings.HasSuffix(f.name, "/"):
		h.Typeflag = tar.TypeDir
	}
	return h
}
