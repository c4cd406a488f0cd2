#!/bin/sh
# Makes the certificates of the TLS tests, valid for a hundred years. Run by hand; the results are kept.
set -eu
cd "$(dirname "$0")"
days=36500
authority() { # name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days $days \
        -subj "/CN=$1" -keyout "$1.key" -out "$1.pem" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
}
leaf() { # name, subjectAltName, authority
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
    printf 'subjectAltName=%s\n' "$2" > ext
    openssl x509 -req -in "$1.csr" -CA "$3.pem" -CAkey "$3.key" -set_serial "0x$(openssl rand -hex 8)" \
        -days $days -extfile ext -out "$1.pem"
    rm "$1.csr" ext
}
authority ca
authority other-ca
leaf server DNS:broker,IP:127.0.0.1 ca
leaf revoked DNS:broker ca
leaf client DNS:client ca
openssl ec -in client.key -aes256 -passout pass:s3cret -out client-encrypted.key
touch index.txt index.txt.attr
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=%s\n' $days > crl.cnf
openssl ca -config crl.cnf -keyfile ca.key -cert ca.pem -revoke revoked.pem
openssl ca -config crl.cnf -keyfile ca.key -cert ca.pem -gencrl -out crl.pem
rm -f index.txt* crl.cnf ca.key other-ca.key

# Stores of Java with the same certificates: the authority alone, and the client's key with its chain.
rm -f ca.jks client.jks client.p12
keytool -importcert -noprompt -alias ca -file ca.pem -keystore ca.jks -storetype JKS -storepass s3cret
openssl pkcs12 -export -inkey client.key -in client.pem -certfile ca.pem -out client.p12 -passout pass:s3cret
keytool -importkeystore -srckeystore client.p12 -srcstorepass s3cret -destkeystore client.jks -deststoretype JKS \
    -deststorepass s3cret
