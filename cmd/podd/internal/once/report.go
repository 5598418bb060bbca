package once

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Report is a file that a result is written to.
type Report struct {
	path   string
	format func(io.Writer, *Result) error
}

// NewReport takes the format from the name: JUnit for .xml, JSON for .json. That
// the file can be written is found out now and not when all has run.
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

// writable leaves what is there as it is, and nothing where nothing was.
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
		return bare(err)
	}
	if there {
		return f.Close()
	}
	return errors.Join(f.Close(), os.Remove(path))
}

// Write replaces what is in the file.
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

// NotRun is the result of a run that could not begin.
func NotRun(why error) *Result {
	v := Verdict{Outcome: Broken, Code: CodeOwn, Why: why.Error()}
	row := Row{Name: "podd", Pod: "podd", State: Failed, Text: plain(why.Error())}
	return &Result{Verdict: v, Rows: []Row{row}}
}
