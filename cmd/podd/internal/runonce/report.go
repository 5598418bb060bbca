package runonce

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"podd/cmd/podd/internal/exit"
)

// A Report is a file for the result.
type Report struct {
	path   string
	format func(io.Writer, *Result) error
}

// NewReport derives the format from the name: JUnit for .xml, JSON for .json. It returns
// an error if the file cannot be written, so that the run does not start.
func NewReport(path string) (*Report, error) {
	formats := map[string]func(io.Writer, *Result) error{".xml": writeJUnit, ".json": writeJSON}
	format := formats[filepath.Ext(path)]
	if format == nil {
		return nil, fmt.Errorf("--report %s: the name tells the format; want one that ends in .xml (JUnit) or .json", path)
	}
	if err := writable(path); err != nil {
		return nil, fmt.Errorf("--report %s: %w; no pod was started", path, err)
	}
	return &Report{path, format}, nil
}

// writable checks that a file can be written. It does not change it, and removes it if it
// did not exist.
func writable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a directory")
	case err == nil && !info.Mode().IsRegular():
		return nil // a pipe may have no reader yet
	}
	there := err == nil
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return withoutPath(err)
	}
	if there {
		return f.Close()
	}
	return errors.Join(f.Close(), os.Remove(path))
}

// Write replaces the content of the file.
func (r *Report) Write(result *Result) error {
	var b bytes.Buffer
	if err := r.format(&b, result); err != nil {
		return fmt.Errorf("writing the report %s: %w", r.path, err)
	}
	if err := os.WriteFile(r.path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// NotRun returns the result of a run that could not start.
func NotRun(why error) *Result {
	v := Verdict{Outcome: Broken, Code: exit.Internal, Why: why.Error()}
	row := Row{Name: "podd", Pod: "podd", State: Failed, Text: plain(why.Error())}
	return &Result{Verdict: v, Rows: []Row{row}}
}
