// Package checksum adds checksums to JSON files, and checks the checksums and versions of
// such files.
//
// The last field of the object in such a file is the checksum of all bytes before it:
//
//	{"version":1,"name":"web","checksum":"0a1b2c3d"}
//
// The checksum detects bytes that changed on the disk and truncated files, which may still
// be valid JSON with other values. It does not detect deliberate changes.
package checksum

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	fieldPrefix = `,"checksum":"`
	suffixSize  = len(fieldPrefix) + 8 + len(`"}`)
)

var (
	// ErrMissing is returned by Verify if data does not end with a checksum.
	ErrMissing       = errors.New("the checksum is missing")
	errWrongChecksum = errors.New("the checksum is wrong")
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Marshal returns v as JSON with a checksum. The JSON of v must be an object with at least
// one field, and without the field "checksum".
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	data = data[:len(data)-1] // the closing brace
	return append(data, checksumSuffix(data)...), nil
}

// Verify returns an error if data does not end with the checksum of all bytes before it. data may
// contain any bytes; Verify does not check whether data is valid JSON.
func Verify(data []byte) error {
	suffixStart := len(data) - suffixSize
	if suffixStart < 0 || !bytes.HasPrefix(data[suffixStart:], []byte(fieldPrefix)) {
		return ErrMissing
	}
	if string(data[suffixStart:]) != checksumSuffix(data[:suffixStart]) {
		return errWrongChecksum
	}
	return nil
}

// CheckVersion returns an error if data is not a JSON object, or if the field "version" of the
// object is higher than the parameter latest. A missing version is 0. data may contain any bytes.
// CheckVersion must be called before other fields are decoded, because another version may have
// fields of other types.
func CheckVersion(data []byte, latest int) error {
	var format struct{ Version int }
	if err := json.Unmarshal(data, &format); err != nil {
		return fmt.Errorf("invalid JSON: %w", err)
	}
	if format.Version > latest {
		return fmt.Errorf("the file has format version %d of a newer podd, but this podd reads only versions up to %d", format.Version, latest)
	}
	return nil
}

// checksumSuffix returns the field with the checksum of data, and the closing brace.
func checksumSuffix(data []byte) string {
	return fmt.Sprintf(`%s%08x"}`, fieldPrefix, crc32.Checksum(data, crcTable))
}
