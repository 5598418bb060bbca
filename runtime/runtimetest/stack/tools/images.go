package tools

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Names of the test images.
const (
	PauseImage   = "podd.test/pause:1"   // for the process of a sandbox
	BusyboxImage = "podd.test/busybox:1" // a shell and the usual commands in /bin
	WebImage     = "podd.test/web:1"     // an HTTP server on $PORT, 8080 if it is not set
)

const imagesTar = "images.tar"

// imageRecipe is part of the hash of the images. Change it when their build changes.
const imageRecipe = "1"

// ensureImages creates the tarball of all images and returns its directory.
func ensureImages(ctx context.Context, c *cache, root string) (string, error) {
	busybox, err := debianBusybox(ctx, c)
	if err != nil {
		return "", err
	}
	sources := filepath.Join(root, "testdata", "images")
	hash, err := imagesHash(ctx, sources, busybox)
	if err != nil {
		return "", err
	}
	return c.ensureEntry("images-"+hash, func(dir string) error {
		images, err := makeImages(ctx, dir, sources, busybox)
		if err != nil {
			return fmt.Errorf("creating the test images: %w", err)
		}
		return writeImages(filepath.Join(dir, imagesTar), images)
	})
}

func makeImages(ctx context.Context, dir, sources, busybox string) (map[name.Reference]v1.Image, error) {
	images := map[name.Reference]v1.Image{}
	for ref, make := range map[string]func() (v1.Image, error){
		PauseImage:   func() (v1.Image, error) { return programImage(ctx, dir, sources, "pause") },
		WebImage:     func() (v1.Image, error) { return programImage(ctx, dir, sources, "web") },
		BusyboxImage: func() (v1.Image, error) { return busyboxImage(ctx, busybox) },
	} {
		parsed, err := name.ParseReference(ref)
		if err != nil {
			return nil, fmt.Errorf("parsing the image name %s: %w", ref, err)
		}
		if images[parsed], err = make(); err != nil {
			return nil, fmt.Errorf("creating image %s: %w", ref, err)
		}
	}
	return images, nil
}

func writeImages(file string, images map[name.Reference]v1.Image) error {
	if err := tarball.MultiRefWriteToFile(file, images); err != nil {
		return fmt.Errorf("writing the test images: %w", err)
	}
	return nil
}

// programImage returns an image with one static Go program at /<program>.
func programImage(ctx context.Context, dir, sources, program string) (v1.Image, error) {
	data, err := build(ctx, filepath.Join(sources, program), filepath.Join(dir, program))
	if err != nil {
		return nil, err
	}
	files := []file{{name: program, mode: 0o755, data: data}}
	return newImage(files, v1.Config{Entrypoint: []string{"/" + program}})
}

func imagesHash(ctx context.Context, sources, busybox string) (string, error) {
	parts := [][]byte{[]byte(imageRecipe)}
	add := func(path string) error {
		data, err := os.ReadFile(path)
		parts = append(parts, []byte(filepath.Base(path)), data)
		return err
	}
	err := filepath.WalkDir(sources, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return add(path)
	})
	if err == nil {
		err = add(busybox)
	}
	if err != nil {
		return "", fmt.Errorf("hashing the sources of the test images: %w", err)
	}
	version, err := run(ctx, sources, nil, "go", "env", "GOVERSION", "GOARCH")
	if err != nil {
		return "", err
	}
	return hashParts(append(parts, version)...), nil
}
