package document

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Limits of a text, so that no file can exhaust podd's memory.
const (
	// maxBytes is the maximum size of a text in bytes. The kubelet has the same limit.
	maxBytes = 10 << 20
	// maxDocuments is the maximum number of documents in one text.
	maxDocuments = 10_000
	// maxIndicators limits the number of indicators: line ends, commas, opening brackets, and those
	// dashes and question marks that precede a blank. Every YAML node needs an indicator, so
	// maxIndicators limits the number of nodes before the document is parsed.
	maxIndicators = 100_000
	// maxDepth is the maximum nesting depth of a document.
	maxDepth = 100
	// maxExpandedNodes limits the number of nodes that aliases add to a document.
	// maxExpandedBytes limits the total size in bytes of the values of these nodes.
	maxExpandedNodes = 100_000
	maxExpandedBytes = 4 << 20
)

// A Part is the text of one document.
type Part struct {
	text        []byte
	linesBefore int // number of lines of the file before text
}

// Split cuts a text into documents. It examines only the beginnings of lines. This is sufficient,
// because a "---" or "..." in the first column, followed by a blank, always ends a YAML document.
// This is true even inside a scalar (YAML 1.2, production c-forbidden). If a part still contains
// more than one document, Parse returns an error. FuzzSplit compares the documents with those that
// the YAML library finds.
func Split(data []byte) ([]Part, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("file too large: %d bytes (limit %d); split it", len(data), maxBytes)
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, fmt.Errorf("the file is encoded in UTF-16; save it in UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("the file is not valid UTF-8; write YAML or JSON")
	}
	var parts []Part
	current := Part{}
	partBegin, linesBefore, lineBegin := 0, 0, 0
	endPart := func(end int) {
		current.text = data[partBegin:end]
		parts = append(parts, current)
		partBegin, current = end, Part{linesBefore: linesBefore}
	}
	for lineBegin < len(data) {
		nextLine := lineEnd(data, lineBegin)
		line := data[lineBegin:nextLine]
		if isMarker(line, "---") && !hasOnlyDirectives(data[partBegin:lineBegin]) {
			endPart(lineBegin)
		}
		linesBefore++
		if isMarker(line, "...") {
			endPart(nextLine)
		}
		lineBegin = nextLine
	}
	endPart(len(data))
	if len(parts) > maxDocuments {
		return nil, fmt.Errorf("too many documents: %d (limit %d); split the file", len(parts), maxDocuments)
	}
	return parts, nil
}

// lineEnd returns the end of the line that begins at i, including its line break.
func lineEnd(data []byte, i int) int {
	for ; i < len(data); i++ {
		switch data[i] {
		case '\n':
			return i + 1
		case '\r':
			if i+1 < len(data) && data[i+1] == '\n' {
				return i + 2
			}
			return i + 1
		}
	}
	return len(data)
}

// isMarker reports whether a line is the given document marker, "---" or "...".
func isMarker(line []byte, mark string) bool {
	return bytes.HasPrefix(line, []byte(mark)) &&
		(len(line) == len(mark) || bytes.IndexByte([]byte(" \t\r\n"), line[len(mark)]) >= 0)
}

// hasOnlyDirectives reports whether a text has only comments and %-directives, which belong to
// the document after the next marker.
func hasOnlyDirectives(text []byte) bool {
	for at := 0; at < len(text); {
		nextLine := lineEnd(text, at)
		line := bytes.TrimSpace(text[at:nextLine])
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
		at = nextLine
	}
	return true
}

// hasTooManyIndicators reports whether a document could have more than maxIndicators nodes.
func hasTooManyIndicators(text []byte) bool {
	indicators := 0
	for i, c := range text {
		switch c {
		case '\n', '\r', ',', '[', '{':
			indicators++
		case '-', '?':
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				indicators++
			}
		}
	}
	return indicators > maxIndicators
}
