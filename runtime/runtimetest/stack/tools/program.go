package tools

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// commandDir is the directory in an image to which addCommand writes the program. It is on the
// PATH.
const commandDir = "/usr/local/bin"

// WriteImages builds the Go program in the directory source and writes a tarball of images that
// contain the program. A key of commands is the reference of an image. The value is the name of the
// program in that image, on the PATH.
func WriteImages(ctx context.Context, file, source string, commands map[string]string) error {
	program, err := build(ctx, source, filepath.Join(filepath.Dir(file), "program"))
	if err != nil {
		return err
	}
	images := map[name.Reference]v1.Image{}
	for ref, command := range commands {
		if err := addCommand(images, ref, command, program); err != nil {
			return err
		}
	}
	return writeImages(file, images)
}

// WriteProgramImages writes a tarball of images that contain existing static programs. A key of
// programs is the reference of an image. The value is the path of its program, which keeps its
// file name in the image.
func WriteProgramImages(to string, programs map[string]string) error {
	images := map[name.Reference]v1.Image{}
	for ref, file := range programs {
		program, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the program %s: %w", file, err)
		}
		if err := addCommand(images, ref, filepath.Base(file), program); err != nil {
			return err
		}
	}
	return writeImages(to, images)
}

// addCommand adds an image that contains program as a command on the PATH.
func addCommand(images map[name.Reference]v1.Image, ref, command string, program []byte) error {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return fmt.Errorf("parsing the image name %s: %w", ref, err)
	}
	files := []file{{name: path.Join(commandDir, command)[1:], mode: 0o755, data: program}}
	if images[parsed], err = newImage(files, v1.Config{Env: []string{"PATH=" + commandDir}}); err != nil {
		return fmt.Errorf("creating image %s: %w", ref, err)
	}
	return nil
}

// build builds the package in the directory source as a static program, writes it to the file
// binary, and returns its content.
func build(ctx context.Context, source, binary string) ([]byte, error) {
	if _, err := run(ctx, source, goEnv("0"), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "."); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the program %s: %w", binary, err)
	}
	return data, nil
}
