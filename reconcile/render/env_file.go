package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// EnvFile is a file in an emptyDir volume that contains variables (env[].valueFrom.fileKeyRef,
// KEP-3721). Path is relative to the volume.
type EnvFile struct{ Volume, Path string }

// EnvFiles returns the files to which variables of a container refer, each once. The caller reads
// them and passes their text in ContainerInput.EnvFiles.
func EnvFiles(c *v1.Container) []EnvFile {
	var files []EnvFile
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil || from.FileKeyRef == nil {
			continue
		}
		file := EnvFile{from.FileKeyRef.VolumeName, from.FileKeyRef.Path}
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// lookupFileKey returns the value of a key in a file. As in the kubelet, an empty value counts as a
// missing key. If the file or the key is missing and optional, set is false, and the variable is
// omitted. The kubelet returns an error if an optional file is missing, although the API specifies
// that the variable is omitted.
func lookupFileKey(in *ContainerInput, ref *v1.FileKeySelector) (value string, set bool, err error) {
	text, found := in.EnvFiles[EnvFile{ref.VolumeName, ref.Path}]
	if found {
		if value, err = parseEnvFile(text, ref.Key); err != nil {
			return "", false, fmt.Errorf("file %q of volume %q: %w", ref.Path, ref.VolumeName, err)
		}
	}
	switch {
	case value != "":
		return value, true, checkNoNUL(value)
	case isTrue(ref.Optional):
		return "", false, nil
	case !found:
		return "", false, fmt.Errorf("file %q of volume %q does not exist; write it in an init container, or set optional", ref.Path, ref.VolumeName)
	}
	return "", false, fmt.Errorf("file %q of volume %q does not set %s; add the line %s='VALUE', or set optional", ref.Path, ref.VolumeName, ref.Key, ref.Key)
}

// parseEnvFile returns the value of the first variable called key in a text of lines NAME='VALUE',
// or "" if there is none. It does not check the text after that variable. Rules (KEP-3721):
//   - VALUE can have several lines. It has no escape sequences and cannot contain a single quote.
//   - Empty lines and lines that begin with # are ignored, and also a comment after the value.
//   - NAME must not be followed by spaces. A space after = makes the value empty, as in a shell.
//
// Errors contain line numbers, but no text of the file.
func parseEnvFile(text, key string) (string, error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		line := strings.TrimLeft(lines[i], " \t")
		if line == "" || line[0] == '#' {
			i++
			continue
		}
		name, valueStart, ok := strings.Cut(line, "=")
		if !ok || name == "" || strings.TrimRight(name, " \t") != name {
			return "", fmt.Errorf("line %d is not a variable; write NAME='VALUE' without spaces before and after =", i+1)
		}
		value, usedLines, err := envFileValue(valueStart, lines[i+1:])
		if err != nil {
			return "", fmt.Errorf("line %d: %w", i+1, err)
		}
		if name == key {
			return value, nil
		}
		i += 1 + usedLines
	}
	return "", nil
}

// envFileValue returns the value of a variable. valueStart is the text after NAME=, with which the
// value begins. nextLines contains the following lines, in which the value may continue. usedLines
// is the number of these lines that belong to the value.
func envFileValue(valueStart string, nextLines []string) (value string, usedLines int, err error) {
	if valueStart != "" && (valueStart[0] == ' ' || valueStart[0] == '\t') {
		return "", 0, nil
	}
	remaining, ok := strings.CutPrefix(valueStart, "'")
	if !ok {
		return "", 0, errors.New("the value must be in single quotes")
	}
	var b strings.Builder
	for {
		part, afterQuote, isClosed := strings.Cut(remaining, "'")
		b.WriteString(part)
		if isClosed {
			if afterQuote = strings.TrimLeft(afterQuote, " \t"); afterQuote != "" && afterQuote[0] != '#' {
				return "", 0, errors.New("only a comment may follow the closing quote")
			}
			return b.String(), usedLines, nil
		}
		if usedLines == len(nextLines) {
			return "", 0, errors.New("the value has no closing quote")
		}
		b.WriteByte('\n')
		remaining = nextLines[usedLines]
		usedLines++
	}
}
