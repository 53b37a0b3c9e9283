// Calls each target at a steady rate, and prints each call as a line of JSON.
// Arguments: the deadline of a call and the pause after it, in milliseconds, and targets.
const grpc = require('@grpc/grpc-js');

require('@grpc/grpc-js-xds').register();

const METHOD = '/grpc.health.v1.Health/Check';
const [deadline, pause, ...targets] = process.argv.slice(2);
const same = (bytes) => bytes;

function calls(client, target) {
  const line = {target, peer: '', error: ''};
  const began = Date.now();
  const call = client.makeUnaryRequest(METHOD, same, same, Buffer.alloc(0), new grpc.Metadata(),
    {deadline: began + Number(deadline)}, (error) => {
      if (error) {
        line.error = grpc.status[error.code] + ': ' + error.details;
      }
      line.milliseconds = Date.now() - began;
      console.log(JSON.stringify(line));
      setTimeout(calls, Number(pause), client, target);
    });
  call.on('metadata', (metadata) => { line.peer = String(metadata.get('peer')[0] || ''); });
}

for (const target of targets) {
  calls(new grpc.Client(target, grpc.credentials.createInsecure()), target);
}
process.stdin.on('end', () => process.exit(0)).resume();
