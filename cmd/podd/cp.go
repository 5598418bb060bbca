package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"podd/cmd/podd/internal/archive"
	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// CpCmd is podd cp.
type CpCmd struct {
	Client
	Select
	From      string `arg:"" help:"A file or directory: PATH here, POD:PATH in a container." complete:"podfile,file"`
	To        string `arg:"" help:"What it is to be, or a directory that it goes into; one of the two is in a container." complete:"podfile,file"`
	Container string `short:"c" placeholder:"NAME" help:"In this container; else in the pod's first, or the one its annotation names." complete:"container"`
}

// container is one that files go to or come from.
type container struct {
	peer *peer
	pod  *server.PodView
	name string
	word string // by which other verbs know the pod
	talk io.Writer
}

// Run copies with the container's own tar, as kubectl cp does.
func (c *CpCmd) Run(ctx context.Context, s Streams) error {
	fromPod, from, fromInside := podPath(c.From)
	toPod, to, toInside := podPath(c.To)
	switch {
	case fromInside == toInside:
		return exitWith(codeUsage, errors.New("one of the two must be POD:PATH, and one a path here; begin one that has a colon with ./"))
	case from == "" || to == "":
		return exitWith(codeUsage, errors.New("a path is missing: name it as POD:PATH"))
	}
	p, pod, word, err := c.reach(ctx, c.Select, fromPod+toPod)
	if err != nil {
		return err
	}
	name, err := chooseContainer(pod, c.Container, "-c NAME", s)
	if err != nil {
		return err
	}
	in := &container{p, pod, name, word, s.Err}
	skip := &skipped{to: s.Err}
	if fromInside {
		err = in.fetch(ctx, from, to, skip)
	} else {
		err = in.send(ctx, from, to, skip)
	}
	skip.rest()
	return err
}

// podPath takes POD:PATH apart. What begins with / or . is here.
func podPath(word string) (pod, inside string, ok bool) {
	pod, inside, ok = strings.Cut(word, ":")
	if !ok || strings.HasPrefix(word, "/") || strings.HasPrefix(word, ".") {
		return "", word, false
	}
	return pod, inside, true
}

// run runs a command and says which program the container lacks.
func (c *container) run(ctx context.Context, streams stream.Command, command ...string) error {
	err := c.peer.runCommand(ctx, inPod("/exec/", c.pod, c.name), url.Values{"command": command}, &streams)
	err = execError(err, c.name, c.word, command[0])
	missing := coded{}
	exit := (*stream.ExitError)(nil)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &exit) && exit.Code != 126 && exit.Code != 127:
		return fmt.Errorf("%s in container %s of %s ended with exit code %d", command[0], c.name, c.word, exit.Code)
	case exit != nil, errors.As(err, &missing) && missing.code == codeNotFound:
		return fmt.Errorf("container %s of %s has no %s, which podd cp needs there; copy through a volume, or by podd exec with what it has", c.name, c.word, command[0])
	}
	return hint(err, c.word)
}

// fetch copies out of the container.
func (c *container) fetch(ctx context.Context, from, to string, skip *skipped) error {
	dir, base := path.Split(path.Clean(from))
	if base == "" || base == "." || base == ".." || strings.HasSuffix(from, "/.") {
		dir, base = from, "."
	}
	target := filepath.Clean(to)
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		target = filepath.Join(target, base)
	} else if strings.HasSuffix(to, "/") {
		return fmt.Errorf("copying to %s: there is no such directory", to)
	}
	root, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("copying to %s: %w", to, err)
	}
	defer root.Close()
	name := filepath.Base(target)
	if base == "." { // its contents
		if err := root.MkdirAll(name, 0o777); err != nil {
			return fmt.Errorf("copying to %s: %w", to, err)
		}
	}
	archived, out := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := c.run(ctx, stream.Command{Stdout: out, Stderr: c.talk}, "tar", "cf", "-", "-C", orElse(dir, "."), "./"+base)
		out.CloseWithError(err)
		sent <- err
	}()
	err = archive.Extract(archived, base, root, name, skip.add)
	if err == nil || errors.Is(err, archive.ErrEmpty) {
		io.Copy(io.Discard, archived) // tar pads, and says how it ended
	}
	archived.CloseWithError(io.ErrClosedPipe)
	if failed := <-sent; failed != nil && (err == nil || errors.Is(err, archive.ErrEmpty) || errors.Is(err, failed)) {
		return failed
	}
	if err != nil {
		return fmt.Errorf("copying %s of %s to %s: %w", from, c.word, to, err)
	}
	return nil
}

// send copies into the container.
func (c *container) send(ctx context.Context, from, to string, skip *skipped) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("copying to %s: %w", c.word, err)
	}
	local, err := filepath.Abs(from)
	if err != nil {
		return fmt.Errorf("copying to %s: %w", c.word, err)
	}
	target := path.Clean(to)
	// A container without test has no tar either, or says so then.
	if c.run(ctx, stream.Command{Stderr: nowhere}, "test", "-d", target) == nil {
		target = path.Join(target, filepath.Base(local))
	}
	archived, in := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := archive.Write(in, local, path.Base(target), skip.add)
		in.CloseWithError(err)
		written <- err
	}()
	err = c.run(ctx, stream.Command{Stdin: archived, Stdout: nowhere, Stderr: c.talk}, "tar", "xmf", "-", "-C", path.Dir(target))
	archived.CloseWithError(io.ErrClosedPipe)
	if failed := <-written; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return fmt.Errorf("copying %s to %s: %w", from, c.word, failed)
	}
	return err
}

// skipped tells of a few entries that were left out, and how many more.
type skipped struct {
	to io.Writer
	n  int
}

// fewSkipped are named.
const fewSkipped = 10

func (s *skipped) add(entry, why string) {
	if s.n++; s.n <= fewSkipped {
		fmt.Fprintf(s.to, "podd: left out %s: %s\n", plain(entry), why)
	}
}

func (s *skipped) rest() {
	if s.n > fewSkipped {
		fmt.Fprintf(s.to, "podd: left out %d more\n", s.n-fewSkipped)
	}
}
