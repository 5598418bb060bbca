package runonce

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A reportFile is a file to which the result of a run is written.
type reportFile struct {
	path   string
	format func(io.Writer, *runResult) error
}

// newReportFile returns a reportFile. The name determines the format: JUnit for .xml, JSON
// for .json. newReportFile returns an error if the file cannot be written, so that the run
// does not start.
func newReportFile(path string) (*reportFile, error) {
	formats := map[string]func(io.Writer, *runResult) error{".xml": writeJUnit, ".json": writeJSON}
	format := formats[filepath.Ext(path)]
	if format == nil {
		return nil, fmt.Errorf("--report %s: unknown format; use a file name that ends in .xml (JUnit) or .json", path)
	}
	if err := checkWritable(path); err != nil {
		return nil, fmt.Errorf("--report %s: %w; no pod was started", path, err)
	}
	return &reportFile{path, format}, nil
}

// checkWritable returns an error if a file cannot be written. It does not modify an existing file.
// If there is no file, it creates a file and removes the file again.
func checkWritable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("is a directory")
	case err == nil && !info.Mode().IsRegular():
		return nil // not opened, because opening a pipe would block if the pipe has no reader yet
	}
	exists := err == nil
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return withoutPath(err)
	}
	if exists {
		return f.Close()
	}
	return errors.Join(f.Close(), os.Remove(path))
}

// write replaces the content of the file.
func (r *reportFile) write(result *runResult) error {
	var b bytes.Buffer
	if err := r.format(&b, result); err != nil {
		return fmt.Errorf("writing the report %s: %w", r.path, err)
	}
	if err := os.WriteFile(r.path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// notStartedResult returns the result of a run that could not start. code is its exit code.
func notStartedResult(err error, code int) *runResult {
	v := verdict{Outcome: outcomeBroken, Code: code, Why: err.Error()}
	row := resultRow{Name: "podd", Pod: "podd", State: rowFailed, Text: withoutControlChars(err.Error())}
	return &runResult{Verdict: v, Rows: []resultRow{row}}
}
