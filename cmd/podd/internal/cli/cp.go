package cli

import (
	"cmp"
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
	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// CpCmd is the podd cp command.
type CpCmd struct {
	client.Flags
	PodSelector
	From      string `arg:"" help:"File or directory to copy: local PATH, or POD:PATH in a container." complete:"podfile,file"`
	To        string `arg:"" help:"Name of the copy, or an existing directory to copy into: local PATH, or POD:PATH in a container." complete:"podfile,file"`
	Container string `short:"c" placeholder:"NAME" help:"Container name. If omitted, use the kubectl.kubernetes.io/default-container annotation or the first container in the pod." complete:"container"`
}

// A copyContainer is a container to copy to or from.
type copyContainer struct {
	client *client.Client
	pod    *server.PodView
	name   string
	podArg string // argument that selects the pod, for messages
	stderr io.Writer
}

// Run copies files with the tar program in the container, as kubectl cp does.
func (c *CpCmd) Run(ctx context.Context, s iostreams.Streams) error {
	fromPod, from, isFromPod := parsePodPath(c.From)
	toPod, to, isToPod := parsePodPath(c.To)
	switch {
	case isFromPod == isToPod:
		return exit.NewError(exit.Usage, errors.New("exactly one of the two arguments must be POD:PATH; write ./ before a local path that contains a colon"))
	case from == "" || to == "":
		return exit.NewError(exit.Usage, errors.New("missing path; use POD:PATH"))
	}
	p, pod, podArg, err := connectAndFindPod(ctx, c.Flags, c.PodSelector, fromPod+toPod)
	if err != nil {
		return err
	}
	name, err := chooseContainer(pod, c.Container, "-c NAME", s.Err)
	if err != nil {
		return err
	}
	in := &copyContainer{p, pod, name, podArg, s.Err}
	skipped := &skipReport{to: s.Err}
	if isFromPod {
		err = in.copyOut(ctx, from, to, skipped)
	} else {
		err = in.copyIn(ctx, from, to, skipped)
	}
	skipped.close()
	return err
}

// parsePodPath splits the argument POD:PATH into pod and filePath. arg is a local path if it
// contains no colon, or begins with / or a period. For a local path, ok is false and filePath is
// arg.
func parsePodPath(arg string) (pod, filePath string, ok bool) {
	pod, filePath, ok = strings.Cut(arg, ":")
	if !ok || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, ".") {
		return "", arg, false
	}
	return pod, filePath, true
}

// run runs a command in the container. If the program does not exist in the container, run returns
// an error that contains the name of the program.
func (c *copyContainer) run(ctx context.Context, streams stream.Command, command ...string) error {
	stderr := &headWriter{to: streams.Stderr}
	streams.Stderr = stderr
	err := c.client.RunCommand(ctx, containerPath("/exec/", c.pod, c.name), url.Values{"command": command}, &streams)
	err = execError(err, c.name, c.podArg, command[0])
	exitErr := exit.Error{}
	commandErr := (*stream.ExitError)(nil)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &commandErr) && commandErr.Code != 126 && commandErr.Code != 127 && !reportsMissingProgram(commandErr.Code, stderr.head):
		return fmt.Errorf("%s in container %s of %s exited with code %d", command[0], c.name, c.podArg, commandErr.Code)
	case commandErr != nil, errors.As(err, &exitErr) && exitErr.Code() == exitCodeNotFound:
		return fmt.Errorf("container %s of %s has no program %s, which \"podd cp\" requires; use a volume, or \"podd exec\" with another program", c.name, c.podArg, command[0])
	}
	return withWhyHint(err, c.podArg)
}

// A headWriter writes all data to another writer, and stores the first kilobyte of the data in
// head.
type headWriter struct {
	to   io.Writer
	head []byte
}

// Write implements io.Writer.
func (b *headWriter) Write(p []byte) (int, error) {
	b.head = append(b.head, p[:min(len(p), 1024-len(b.head))]...)
	return b.to.Write(p)
}

// copyOut copies the file or directory at remotePath in the container to localPath. If localPath is a
// directory, the copy is in this directory. skipped receives the entries that cannot be copied.
func (c *copyContainer) copyOut(ctx context.Context, remotePath, localPath string, skipped *skipReport) error {
	dir, base := path.Split(path.Clean(remotePath))
	if base == "" || base == "." || base == ".." || strings.HasSuffix(remotePath, "/.") {
		dir, base = remotePath, "."
	}
	target := filepath.Clean(localPath)
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		target = filepath.Join(target, base)
	} else if strings.HasSuffix(localPath, "/") {
		return fmt.Errorf("copying to %s: it is not an existing directory", localPath)
	}
	root, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("copying to %s: %w", localPath, err)
	}
	defer root.Close()
	name := filepath.Base(target)
	if base == "." { // copy only the contents of the directory
		if err := root.MkdirAll(name, 0o777); err != nil {
			return fmt.Errorf("copying to %s: %w", localPath, err)
		}
	}
	archiveReader, archiveWriter := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := c.run(ctx, stream.Command{Stdout: archiveWriter, Stderr: c.stderr}, "tar", "cf", "-", "-C", cmp.Or(dir, "."), "./"+base)
		archiveWriter.CloseWithError(err)
		result <- err
	}()
	err = archive.Extract(archiveReader, base, root, name, skipped.add)
	if err == nil || errors.Is(err, archive.ErrEmpty) {
		io.Copy(io.Discard, archiveReader) // read to the end, because tar writes padding after the last file before it exits
	}
	archiveReader.CloseWithError(io.ErrClosedPipe)
	if runErr := <-result; runErr != nil && (err == nil || errors.Is(err, archive.ErrEmpty) || errors.Is(err, runErr)) {
		return runErr
	}
	if err != nil {
		return fmt.Errorf("copying %s of %s to %s: %w", remotePath, c.podArg, localPath, err)
	}
	return nil
}

// copyIn copies the file or directory at localPath to remotePath in the container. If remotePath is a
// directory, the copy is in this directory. skipped receives the entries that cannot be copied.
func (c *copyContainer) copyIn(ctx context.Context, localPath, remotePath string, skipped *skipReport) error {
	if _, err := os.Stat(localPath); err != nil {
		return fmt.Errorf("copying to %s: %w", c.podArg, err)
	}
	source, err := filepath.Abs(localPath)
	if err != nil {
		return fmt.Errorf("copying to %s: %w", c.podArg, err)
	}
	target := path.Clean(remotePath)
	// Copy into target if it is a directory. If the container has no program named test, podd
	// cannot check this and uses target as the name of the copy. tar then fails if target is a
	// directory. If the container has no tar either, the next call of run returns an error.
	if c.run(ctx, stream.Command{Stderr: io.Discard}, "test", "-d", target) == nil {
		target = path.Join(target, filepath.Base(source))
	}
	archiveReader, in := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := archive.Write(in, source, path.Base(target), skipped.add)
		in.CloseWithError(err)
		result <- err
	}()
	err = c.run(ctx, stream.Command{Stdin: archiveReader, Stdout: io.Discard, Stderr: c.stderr}, "tar", "xmf", "-", "-C", path.Dir(target))
	archiveReader.CloseWithError(io.ErrClosedPipe)
	if writeErr := <-result; writeErr != nil && !errors.Is(writeErr, io.ErrClosedPipe) {
		return fmt.Errorf("copying %s to %s: %w", localPath, c.podArg, writeErr)
	}
	return err
}

// A skipReport prints the first maxPrintedSkips entries that were not copied, and then the number of
// further entries.
type skipReport struct {
	to io.Writer
	n  int
}

// maxPrintedSkips limits the entries that a skipReport prints.
const maxPrintedSkips = 10

// add prints an entry that was not copied, unless it has already printed maxPrintedSkips entries.
func (s *skipReport) add(entry, reason string) {
	if s.n++; s.n <= maxPrintedSkips {
		fmt.Fprintf(s.to, "podd: skipped %s: %s\n", printer.Escape(entry), reason)
	}
}

// close prints the number of entries that add did not print.
func (s *skipReport) close() {
	if s.n > maxPrintedSkips {
		fmt.Fprintf(s.to, "podd: skipped %d more files and directories\n", s.n-maxPrintedSkips)
	}
}
