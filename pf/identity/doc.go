// Package identity reads who an end of IPsec is, as charon does: by the text of a configuration, and by the subject of a
// certificate.
package identity
