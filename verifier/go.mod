module sluice/verifier

go 1.24.0

require github.com/emmansun/gmsm v0.41.1

require golang.org/x/crypto v0.48.0
