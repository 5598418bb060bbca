package printer

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Data writes v in a format: "json" or "yaml".
func Data(w io.Writer, format string, v any) error {
	if format == "json" {
		return JSON(w, v)
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding as YAML: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// JSON writes v as indented JSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
