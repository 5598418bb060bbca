package printer

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// WriteData writes v in a format, which must be "json" or "yaml".
func WriteData(w io.Writer, format string, v any) error {
	if format == "json" {
		return WriteJSON(w, v)
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding as YAML: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// WriteJSON writes v as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
